// SPDX-License-Identifier: Apache-2.0
// When a threshold is met, with and without its minimum reclaim.
#include "judge/eviction/threshold/threshold.h"
#include "judge/vectors/lines.h"

#include <cstdint>

namespace headroom::vectors {
namespace {

class ThresholdMetVectors : public VectorTest {};

TEST_P(ThresholdMetVectors, Agree) {
  const auto signal = parse_signal(text("signal"));
  ASSERT_TRUE(signal) << signal.error().what;
  const auto value = parse_threshold_value(*signal, text("value"));
  ASSERT_TRUE(value && *value);
  Threshold threshold{.signal = *signal, .value = **value, .min_reclaim = {}};
  if (!text("minReclaim").empty()) {
    const auto reclaim = parse_min_reclaim(*signal, text("minReclaim"));
    ASSERT_TRUE(reclaim) << reclaim.error().what;
    threshold.min_reclaim = *reclaim;
  }
  const Observation seen{.available = line().at("available").get<std::int64_t>(),
                         .capacity = line().at("capacity").get<std::int64_t>(),
                         .at = {}};
  EXPECT_EQ(met(threshold, seen, /*enforce_min_reclaim=*/false), line().at("met"));
  EXPECT_EQ(met(threshold, seen, /*enforce_min_reclaim=*/true), line().at("met_with_min_reclaim"));
}

INSTANTIATE_TEST_SUITE_P(Lines, ThresholdMetVectors,
                         testing::ValuesIn(lines_of("threshold_met.jsonl")), case_name);

}  // namespace
}  // namespace headroom::vectors
