// SPDX-License-Identifier: Apache-2.0
// Several thresholds against what the kubelet of 1.36 observes of a node; wrapped counters, which
// are negative amounts, among it.
#include "judge/eviction/threshold/threshold.h"
#include "judge/vectors/lines.h"

#include <cstdint>

namespace headroom::vectors {
namespace {

using Json = nlohmann::json;

class SignalObservationVectors : public VectorTest {};

TEST_P(SignalObservationVectors, Agree) {
  for (const Json& each : line().at("thresholds")) {
    SCOPED_TRACE(each.dump());
    const auto signal = parse_signal(each.at("signal").get<std::string>());
    ASSERT_TRUE(signal) << signal.error().what;
    const auto value = parse_threshold_value(*signal, each.at("value").get<std::string>());
    ASSERT_TRUE(value && *value);
    Threshold threshold{.signal = *signal, .value = **value, .min_reclaim = {}};
    if (each.contains("minReclaim")) {
      const auto reclaim = parse_min_reclaim(*signal, each.at("minReclaim").get<std::string>());
      ASSERT_TRUE(reclaim) << reclaim.error().what;
      threshold.min_reclaim = *reclaim;
    }
    const Json& observed = line().at("observations");
    const auto seen = observed.find(each.at("signal").get<std::string>());
    EXPECT_EQ(seen == observed.end(), each.at("limit").is_null());
    if (seen == observed.end()) continue;  // unknown: no threshold is met
    const Observation observation{.available = seen->at("available").get<std::int64_t>(),
                                  .capacity = seen->at("capacity").get<std::int64_t>(),
                                  .at = {}};
    EXPECT_EQ(resolve(threshold.value, observation.capacity), each.at("limit").get<std::int64_t>());
    EXPECT_EQ(met(threshold, observation, false), each.at("met").get<bool>());
    EXPECT_EQ(met(threshold, observation, true), each.at("met_with_min_reclaim").get<bool>());
  }
}

INSTANTIATE_TEST_SUITE_P(Lines, SignalObservationVectors,
                         testing::ValuesIn(lines_of("signal_observations_136.jsonl")), case_name);

}  // namespace
}  // namespace headroom::vectors
