// SPDX-License-Identifier: Apache-2.0
// Golden: a text against the file that says what it should be. HEADROOM_UPDATE_GOLDEN=1 rewrites
// the file instead, for a reader of the diff to judge.
#pragma once

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace headroom::test {

inline void expect_golden(const std::string& name, const std::string& text) {
  // Tests run in the root of the repository.
  const std::string file = "tests/fixtures/" + name;
  if (std::getenv("HEADROOM_UPDATE_GOLDEN")) {
    std::ofstream(file) << text;
    return;
  }
  std::ifstream golden(file);
  ASSERT_TRUE(golden) << "open " << file;
  std::stringstream expected;
  expected << golden.rdbuf();
  EXPECT_EQ(expected.str(), text) << "differs from " << file;
}

}  // namespace headroom::test
