// SPDX-License-Identifier: Apache-2.0
#include "config/yaml/scalar_values.h"

#include "judge/eviction/threshold/threshold.h"

#include <string>

namespace headroom::config {

std::optional<float> read_percentage(const Section& section, std::string_view key,
                                     std::string_view example) {
  const auto text = section.string(key);
  if (!text) return std::nullopt;
  // As percentages are written everywhere else in this file.
  const auto value = parse_threshold_value(Signal::kMemoryAvailable, *text);
  const auto* share = value && *value ? std::get_if<Fraction>(&**value) : nullptr;
  if (share && share->of_one > 0 && share->of_one < 1) return share->of_one;
  section.add_error(key, "expected a percentage between 0% and 100%, such as " +
                             std::string(example) + ", found \"" + *text + "\"");
  return std::nullopt;
}

}  // namespace headroom::config
