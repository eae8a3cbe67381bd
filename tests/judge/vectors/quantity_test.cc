// SPDX-License-Identifier: Apache-2.0
// Quantities read, rounded and written as upstream does; where upstream wraps, ours saturate.
#include "judge/vectors/lines.h"

#include <headroom/quantity.h>

#include <cstdint>
#include <limits>
#include <string>

namespace headroom::vectors {
namespace {

class QuantityVectors : public VectorTest {};

const char* name_of(Quantity::Format format) {
  switch (format) {
    case Quantity::Format::kDecimalSI:
      return "DecimalSI";
    case Quantity::Format::kBinarySI:
      return "BinarySI";
    case Quantity::Format::kDecimalExponent:
      return "DecimalExponent";
  }
  return "";
}

// Upstream's number, or ours where upstream marks its own as an overflow.
std::int64_t upstream(const nlohmann::json& line, const char* key, const char* overflow) {
  if (line.contains(overflow)) return std::numeric_limits<std::int64_t>::max();
  return std::stoll(line.at(key).get<std::string>());
}

TEST_P(QuantityVectors, Agree) {
  const auto quantity = Quantity::parse(text("input"));
  if (line().contains("error")) {
    ASSERT_FALSE(quantity) << quantity->canonical();
    EXPECT_EQ(quantity.error().what, text("error"));
    return;
  }
  ASSERT_TRUE(quantity) << quantity.error().what;
  EXPECT_EQ(quantity->sign(), line().at("sign"));
  EXPECT_EQ(name_of(quantity->format()), text("format"));
  if (quantity->sign() >= 0) {
    EXPECT_EQ(quantity->value(), upstream(line(), "value", "value_overflow"));
    EXPECT_EQ(quantity->milli_value(), upstream(line(), "milli", "milli_overflow"));
  } else {
    // Of a negative that upstream keeps in arbitrary precision it wraps or loses its rounding:
    // 13 lines, such as "-1654Ti" and "-.4946u" (rounded to +1). Ours mirrors the positive one.
    const auto positive = Quantity::parse(text("input").substr(1));
    ASSERT_TRUE(positive);
    EXPECT_EQ(quantity->value(), -positive->value());
    EXPECT_EQ(quantity->milli_value(), -positive->milli_value());
  }
  EXPECT_EQ(quantity->canonical(), text("canonical"));
}

INSTANTIATE_TEST_SUITE_P(Lines, QuantityVectors, testing::ValuesIn(lines_of("quantity.jsonl")),
                         case_name);

}  // namespace
}  // namespace headroom::vectors
