// SPDX-License-Identifier: Apache-2.0
// Numbers of a JSON document that may be damaged or made by an enemy.
#include "base/state/json_integer.h"

#include <cstdint>
#include <limits>
#include <optional>

#include <gtest/gtest.h>

namespace headroom {
namespace {

using nlohmann::json;

struct Row {
  const char* text;
  std::optional<std::int64_t> number;
};

TEST(JsonInteger, ANumberThatDoesNotFitIsAbsent) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  for (const auto& [text, number] :
       {Row{"0", 0}, Row{"-7", -7}, Row{"1.9", 1}, Row{"-1.9", -1}, Row{"1e3", 1000},
        Row{"9223372036854775807", kMost}, Row{"-9223372036854775808", kLeast},
        Row{"9223372036854775808", {}}, Row{"18446744073709551616", {}}, Row{"1e300", {}},
        Row{"-1e300", {}}, Row{"\"1\"", {}}, Row{"true", {}}, Row{"null", {}}, Row{"[1]", {}}}) {
    EXPECT_EQ(whole_number_of(json::parse(text)), number) << text;
    EXPECT_EQ(whole_number_of(nlohmann::ordered_json::parse(text)), number) << text;
  }
}

TEST(JsonInteger, AFractionIsRefusedWhereAnIntegerMustBe) {
  EXPECT_EQ(integer_of<int>(json::parse("3")), 3);
  for (const char* text : {"3.0", "1e300", "\"3\"", "null"})
    EXPECT_THROW(integer_of<int>(json::parse(text)), json::type_error) << text;
}

}  // namespace
}  // namespace headroom
