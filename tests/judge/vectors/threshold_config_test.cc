// SPDX-License-Identifier: Apache-2.0
// Whole configurations: the set of thresholds they make, or that they make none.
#include "judge/eviction/threshold/threshold_config.h"

#include "judge/resources/go_duration.h"
#include "judge/vectors/lines.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <variant>
#include <vector>

namespace headroom::vectors {
namespace {

class ThresholdConfigVectors : public VectorTest {};

std::string written(const ThresholdValue& value) {
  if (const auto* quantity = std::get_if<Quantity>(&value)) return quantity->canonical();
  char text[32];
  std::snprintf(text, sizeof text, "%g%%",
                static_cast<double>(std::get<Fraction>(value).of_one * 100));
  return text;
}

std::string written(const Threshold& threshold) {
  std::string text = std::string(name(threshold.signal)) + "<" + written(threshold.value) +
                     " grace=" + format_go_duration(threshold.grace);
  if (threshold.min_reclaim) text += " minReclaim=" + written(*threshold.min_reclaim);
  return text;
}

std::string written(const std::vector<ThresholdError>& errors) {
  std::string text;
  for (const auto& error : errors)
    text += error.map + "[" + error.key + "]: " + error.what + "\n";
  return text;
}

TEST_P(ThresholdConfigVectors, Agree) {
  const auto map = [&](const char* key) { return line().at(key).get<StringMap>(); };
  const auto built =
      build_thresholds({.hard = map("evictionHard"),
                        .soft = map("evictionSoft"),
                        .soft_grace = map("evictionSoftGracePeriod"),
                        .min_reclaim = map("evictionMinimumReclaim"),
                        .enforce_node_allocatable =
                            line().at("enforceNodeAllocatable").get<std::vector<std::string>>()});
  if (line().contains("error")) {
    ASSERT_FALSE(built);
    EXPECT_FALSE(built.error().empty());
    return;
  }
  ASSERT_TRUE(built) << written(built.error());
  std::vector<std::string> thresholds;
  for (const Threshold& threshold : *built)
    thresholds.push_back(written(threshold));
  std::sort(thresholds.begin(), thresholds.end());
  EXPECT_EQ(thresholds, line().at("thresholds_sorted").get<std::vector<std::string>>());
}

INSTANTIATE_TEST_SUITE_P(Lines, ThresholdConfigVectors,
                         testing::ValuesIn(lines_of("threshold_config.jsonl")), case_name);

}  // namespace
}  // namespace headroom::vectors
