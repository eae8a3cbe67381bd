// SPDX-License-Identifier: Apache-2.0
// No vector file lies there unused.
#include "judge/vectors/lines.h"
#include "judge/vectors/topology_json.h"

#include <filesystem>

#include <gtest/gtest.h>

namespace headroom::vectors {
namespace {

TEST(VectorFiles, AreAllRun) {
  topology_named("1s1n4c1t");  // read when one is asked for; the others when tests are listed
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/fixtures/vectors")) {
    ++files;
    const std::string name = entry.path().filename();
    EXPECT_TRUE(files_asked_for().contains(name)) << name << ": no test asks for its lines";
  }
  EXPECT_GE(files, 16U);
}

}  // namespace
}  // namespace headroom::vectors
