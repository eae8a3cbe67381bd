// SPDX-License-Identifier: Apache-2.0
// Thresholds as lines to compare: "memory.available < 1Gi for 90s, reclaim 200Mi", sorted (the
// kubelet's list is a set).
#pragma once

#include <headroom/policy.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <variant>
#include <vector>

namespace headroom::test {

inline std::string value_as_text(const ThresholdValue& value) {
  if (const auto* quantity = std::get_if<Quantity>(&value)) return quantity->canonical();
  return std::to_string(std::lround(std::get<Fraction>(value).of_one * 100)) + "%";
}

inline std::vector<std::string> thresholds_as_text(const std::vector<Threshold>& thresholds) {
  std::vector<std::string> lines;
  for (const Threshold& threshold : thresholds) {
    std::string line = std::string(name(threshold.signal)) + " < " + value_as_text(threshold.value);
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(threshold.grace).count();
    if (!threshold.hard()) line += " for " + std::to_string(seconds) + "s";
    if (threshold.min_reclaim) line += ", reclaim " + value_as_text(*threshold.min_reclaim);
    lines.push_back(line);
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

}  // namespace headroom::test
