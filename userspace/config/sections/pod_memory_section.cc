// SPDX-License-Identifier: Apache-2.0
#include "config/sections/sections.h"

#include <array>
#include <charconv>
#include <string>
#include <utility>

namespace headroom::config {
namespace {

constexpr std::array<std::string_view, 2> kLimitKeys{"reclaim", "rescue"};
constexpr std::array<std::string_view, 2> kRescueKeys{"ceiling", "margin"};
constexpr std::array<std::string_view, 4> kColdKeys{"below", "step", "refaultLimit", "swappiness"};

// "150%": more than the original limit, at most ten times as much.
std::optional<float> read_ceiling(const Section& rescue) {
  const auto text = rescue.string("ceiling");
  if (!text) return std::nullopt;
  int percent = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), percent);
  const bool is_percentage = error == std::errc() && std::string_view(end) == "%";
  if (is_percentage && percent > 100 && percent <= 1000) return static_cast<float>(percent) / 100;
  rescue.add_error(
      "ceiling", "expected a percentage from 101% to 1000%, such as 150%, found \"" + *text + "\"");
  return std::nullopt;
}

void read_limits(const Section& section, PodMemoryConfig& config) {
  section.reject_unknown_keys(kLimitKeys);
  if (const auto reclaim = section.boolean("reclaim")) config.limits.reclaim = *reclaim;
  const auto rescue = section.map("rescue");
  if (!rescue) return;
  rescue->reject_unknown_keys(kRescueKeys);
  config.limits.ceiling = read_ceiling(*rescue);
  if (const auto margin = read_percentage(*rescue, "margin", "5%")) config.rescue_margin = *margin;
}

void read_cold(const Section& section, judge_limits::ColdPolicy& cold) {
  section.reject_unknown_keys(kColdKeys);
  cold.below = read_percentage(section, "below", "20%");
  if (const auto step = section.quantity("step")) {
    constexpr std::int64_t kMin = std::int64_t{1} << 20, kMax = std::int64_t{1} << 30;
    if (step->value() >= kMin && step->value() <= kMax)
      cold.step = Bytes{step->value()};
    else
      section.add_error("step", "must be from 1Mi to 1Gi");
  }
  if (const auto share = read_percentage(section, "refaultLimit", "10%"))
    cold.refault_limit = *share;
  if (const auto swappiness = section.integer("swappiness", 0, 200))
    cold.swappiness = static_cast<int>(*swappiness);
}

}  // namespace

std::vector<std::string> pod_memory_keys() {
  std::vector<std::string> paths{"podLimits.reclaim"};
  for (const std::string_view key : kRescueKeys)
    paths.push_back("podLimits.rescue." + std::string(key));
  for (const std::string_view key : kColdKeys)
    paths.push_back("coldMemory." + std::string(key));
  return paths;
}

void read_pod_memory(const Section& headroom, Config& config) {
  if (const auto limits = headroom.map("podLimits")) read_limits(*limits, config.pod_memory);
  if (const auto cold = headroom.map("coldMemory")) read_cold(*cold, config.pod_memory.cold);
}

}  // namespace headroom::config
