// SPDX-License-Identifier: Apache-2.0
// Lines: a vector file as gtest parameters, one line a case, so that gtest's count is the count of
// lines. Files are those of $HEADROOM_VECTORS, else tests/fixtures/vectors under the repository.
#pragma once

#include <ostream>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::vectors {

struct Line {
  std::string file;
  int number = 0;  // 1-based; 0: the file as a whole
  std::string text;
  nlohmann::json json;
  std::string diagnostic;  // why there is nothing to compare: a failure, never a skip
};
// What gtest prints beside a failure.
void PrintTo(const Line& line, std::ostream* out);

// The names lines_of() was asked for so far.
const std::set<std::string>& files_asked_for();

// Every line of `name`. A file that is missing or empty gives one line, which complains.
std::vector<Line> lines_of(const std::string& name);

std::string case_name(const testing::TestParamInfo<Line>& info);

// The fixture of a vector file: refuses lines that complain before the test looks at them.
class VectorTest : public testing::TestWithParam<Line> {
 protected:
  void SetUp() override { ASSERT_EQ(GetParam().diagnostic, ""); }
  const nlohmann::json& line() const { return GetParam().json; }
  std::string text(const char* key) const { return line().at(key).get<std::string>(); }
};

}  // namespace headroom::vectors
