// SPDX-License-Identifier: Apache-2.0
#include "config/sections/pressure_section.h"

#include "config/yaml/percentage.h"
#include "config/yaml/positive_duration.h"

#include <array>

namespace headroom::config {
namespace {

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
