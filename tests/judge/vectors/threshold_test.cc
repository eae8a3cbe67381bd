// SPDX-License-Identifier: Apache-2.0
// One threshold statement: what it means, or the kubelet's own words against it.
#include "judge/eviction/threshold/threshold.h"

#include "judge/vectors/lines.h"

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <variant>

namespace headroom::vectors {
namespace {

class ThresholdVectors : public VectorTest {};

using Parsed = Result<std::optional<ThresholdValue>>;

Parsed parse(const std::string& signal, const std::string& value) {
  const auto known = parse_signal(signal);
  if (!known) return tl::make_unexpected(known.error());
  return parse_threshold_value(*known, value);
}

std::string ten_digits(float value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", static_cast<double>(value));
  return text;
}

TEST_P(ThresholdVectors, Agree) {
  const Parsed parsed = parse(text("signal"), text("value"));
  if (line().value("fraction_f32", "") == "NaN") {  // accepted upstream; ours is to reject
    ASSERT_FALSE(parsed);
    EXPECT_EQ(parsed.error().what, "eviction percentage threshold " + text("signal") +
                                       " must be a number: " + text("value"));
    return;
  }
  if (line().contains("error")) {
    ASSERT_FALSE(parsed);
    EXPECT_EQ(parsed.error().what, text("error"));
    return;
  }
  ASSERT_TRUE(parsed) << parsed.error().what;
  ASSERT_EQ(parsed->has_value(), !line().contains("ignored"));
  if (!*parsed) return;

  EXPECT_EQ(text("operator"), "LessThan");  // the only one a Threshold can have
  if (line().contains("quantity")) {
    ASSERT_TRUE(std::holds_alternative<Quantity>(**parsed));
    EXPECT_EQ(std::get<Quantity>(**parsed).canonical(), text("quantity"));
    return;
  }
  ASSERT_TRUE(std::holds_alternative<Fraction>(**parsed));
  EXPECT_EQ(ten_digits(std::get<Fraction>(**parsed).of_one), text("fraction_f32"));
  for (const auto& [capacity, limit] : line().at("resolved_for_capacity").items())
    EXPECT_EQ(resolve(**parsed, std::stoll(capacity)), limit.get<std::int64_t>()) << capacity;
}

INSTANTIATE_TEST_SUITE_P(Lines, ThresholdVectors, testing::ValuesIn(lines_of("threshold.jsonl")),
                         case_name);

}  // namespace
}  // namespace headroom::vectors
