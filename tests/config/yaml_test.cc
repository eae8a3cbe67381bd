// SPDX-License-Identifier: Apache-2.0
// The YAML reader: the time it takes grows with the text, and what it refuses to expand.
#include "config/yaml/yaml.h"

#include "config/rows.h"
#include "support/cpu_time.h"

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::config::yaml {
namespace {

using test::RowName;

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i)
    all += text;
  return all;
}

std::string numbered(const std::string& before, int count, const std::string& after) {
  std::string all;
  for (int i = 0; i < count; ++i)
    all += before + std::to_string(i) + after;
  return all;
}

struct Growing {
  const char* name;
  std::function<std::string(int)> text;
};
void PrintTo(const Growing& row, std::ostream* out) {
  *out << row.name;
}

class ParseTime : public testing::TestWithParam<Growing> {};

TEST_P(ParseTime, IsLinearInTheNumberOfKeys) {
  const auto parse_all = [](const std::string& text) {
    Diagnostics diagnostics;
    parse(text, "f", diagnostics);
    EXPECT_TRUE(diagnostics.empty()) << to_string(diagnostics.front());
  };
  EXPECT_LE(test::growth(GetParam().text, 10'000, parse_all), 8);  // 16 if quadratic
}

const Growing kGrowing[] = {
    {"keys_of_a_block", [](int n) { return numbered("key", n, ": a\n"); }},
    {"keys_of_json", [](int n) { return "{" + numbered("\"key", n, "\": \"a\", ") + "\"z\": 1}"; }},
    {"keys_merged",
     [](int n) {
       return "<<: {" + numbered("a", n / 2, ": 1, ") + "z: 1}\n" + numbered("b", n / 2, ": 1\n");
     }},
    {"items", [](int n) { return numbered("- a", n, "\n"); }},
};
INSTANTIATE_TEST_SUITE_P(Growing, ParseTime, testing::ValuesIn(kGrowing), RowName{});

struct TooLarge {
  const char* name;
  std::string text;
  const char* diagnostic;  // null: it is read
};
void PrintTo(const TooLarge& row, std::ostream* out) {
  *out << row.name;
}

class Expansion : public testing::TestWithParam<TooLarge> {};

TEST_P(Expansion, IsLimited) {
  Diagnostics diagnostics;
  parse(GetParam().text, "f", diagnostics);
  std::vector<std::string> said;
  for (const Diagnostic& diagnostic : diagnostics)
    said.push_back(to_string(diagnostic));
  std::vector<std::string> expected;
  if (GetParam().diagnostic) expected.emplace_back(GetParam().diagnostic);
  EXPECT_EQ(said, expected);
}

// Each level has ten of the one before: 10^9 leaves.
std::string billion_laughs() {
  std::string text = "a0: &a0 x\n";
  for (int i = 1; i < 10; ++i) {
    const std::string alias = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" +
            repeated(alias + ", ", 9) + alias + "]\n";
  }
  return text;
}

const TooLarge kTooLarge[] = {
    {"a_hundred_levels", repeated("[", 100) + repeated("]", 100), nullptr},
    {"one_level_more", repeated("[", 101) + repeated("]", 101),
     "f:1: nested more than 100 levels deep"},
    {"levels_without_end", repeated("[", 50'000), "f:1: nested more than 100 levels deep"},
    {"levels_through_an_alias",
     "a: &a " + repeated("[", 60) + repeated("]", 60) + "\nb: " + repeated("[", 60) + "*a" +
         repeated("]", 60),
     "f:2: nested more than 100 levels deep"},
    {"a_billion_laughs", billion_laughs(),
     "f:6: more than 200000 keys and values, aliases expanded"},
    {"more_scalars_than_nodes", "[" + repeated("a,", 200'000) + "]",
     "f:1: more than 200000 keys and values, aliases expanded"},
    {"anchors_in_anchors", repeated("&a [", 90) + repeated("x,", 10'000) + repeated("]", 90),
     "f:1: more than 200000 keys and values, aliases expanded"},
    {"a_long_text_many_times",
     "a: &a " + std::string(100'000, 'x') + "\nb: [" + repeated("*a, ", 100) + "]",
     "f:2: aliases expand to more than 1048576 bytes of text"},
};
INSTANTIATE_TEST_SUITE_P(TooLarge, Expansion, testing::ValuesIn(kTooLarge), RowName{});

}  // namespace
}  // namespace headroom::config::yaml
