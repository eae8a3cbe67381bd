// SPDX-License-Identifier: Apache-2.0
#include "config/sections/sections.h"
#include "config/yaml/located_value.h"

#include <array>
#include <span>
#include <string>

namespace headroom::config {
namespace {

constexpr std::array<std::string_view, 3> kSteps{"reclaim", "squeeze", "stuck"};
constexpr std::array<std::string_view, 2> kReclaimKeys{"margin", "step"};
constexpr std::array<std::string_view, 2> kLowerMemoryHighKeys{"margin", "maxDuration"};
constexpr std::array<std::string_view, 3> kStuckKeys{"waitDuration", "relaxDuration", "evict"};

void read_reclaim_step(const Section& reclaim, LadderPolicy& ladder) {
  reclaim.reject_unknown_keys(kReclaimKeys);
  ladder.reclaim_margin = read_percentage(reclaim, "margin", "5%");
  const auto step = reclaim.quantity("step");
  if (!step) return;
  // Each step is one write, and an interrupted one cannot be distinguished from a finished one.
  constexpr std::int64_t kMin = std::int64_t{4} << 20, kMax = std::int64_t{1} << 30;
  if (step->value() >= kMin && step->value() <= kMax)
    ladder.reclaim_step = Bytes{step->value()};
  else
    reclaim.add_error("step", "must be from 4Mi to 1Gi");
}

void read_lower_memory_high(const Section& lower_memory_high, LadderPolicy& ladder) {
  lower_memory_high.reject_unknown_keys(kLowerMemoryHighKeys);
  ladder.lower_high_margin = read_percentage(lower_memory_high, "margin", "3%");
  read_positive_duration(lower_memory_high, "maxDuration", ladder.lower_high_limit);
}

void read_stuck(const Section& stuck, LadderPolicy& ladder) {
  stuck.reject_unknown_keys(kStuckKeys);
  if (const auto after = stuck.duration("waitDuration")) {
    if (*after > Duration::zero())
      ladder.stuck_duration = *after;
    else
      stuck.add_error("waitDuration", "must be more than zero");
  }
  if (const auto relax = stuck.duration("relaxDuration")) {
    if (*relax >= Duration::zero())
      ladder.raise_high_duration = *relax;
    else
      stuck.add_error("relaxDuration", "must not be negative");
  }
  if (const auto evict = stuck.boolean("evict")) ladder.evict_stuck = *evict;
  if (ladder.evict_stuck && !ladder.stuck_duration)
    stuck.add_error("evict", "needs waitDuration beside it");
}

constexpr std::array<std::string_view, 1> kResources{"memory"};
constexpr std::array<std::string_view, 3> kKeys{"threshold", "grace", "window"};
constexpr Duration kGrace = std::chrono::seconds(10);

void read_memory(const Section& memory, Config& config) {
  memory.reject_unknown_keys(kKeys);
  Threshold threshold{
      .signal = Signal::kMemoryPressure, .value = {}, .grace = kGrace, .min_reclaim = std::nullopt};
  // The part of the time that may be lost. Absent: off.
  const auto share = read_percentage(memory, "threshold", "20%");
  read_positive_duration(memory, "grace", threshold.grace);
  read_positive_duration(memory, "window", config.policy.pressure_window);
  if (!share) return;
  // Crossed when less than this much of the time is left.
  threshold.value = Fraction{1 - *share};
  config.memory_pressure = threshold;
}

}  // namespace

std::vector<std::string> ladder_keys() {
  std::vector<std::string> paths;
  const auto add = [&](std::string_view step, std::span<const std::string_view> keys) {
    for (const std::string_view key : keys)
      paths.push_back(std::string(step) + "." + std::string(key));
  };
  add("reclaim", kReclaimKeys);
  add("squeeze", kLowerMemoryHighKeys);
  add("stuck", kStuckKeys);
  return paths;
}

void read_ladder(const Section& headroom, Policy& policy) {
  const auto ladder = headroom.map("ladder");
  if (!ladder) return;
  ladder->reject_unknown_keys(kSteps);
  if (const auto reclaim = ladder->map("reclaim")) read_reclaim_step(*reclaim, policy.ladder);
  if (const auto lower_memory_high = ladder->map("squeeze"))
    read_lower_memory_high(*lower_memory_high, policy.ladder);
  if (const auto stuck = ladder->map("stuck")) read_stuck(*stuck, policy.ladder);
}

std::span<const std::string_view> memory_pressure_keys() {
  return kKeys;
}

void read_pressure(const Section& headroom, Config& config) {
  const auto pressure = headroom.map("pressure");
  if (!pressure) return;
  pressure->reject_unknown_keys(kResources);
  if (const auto memory = pressure->map("memory")) read_memory(*memory, config);
}

}  // namespace headroom::config
