// SPDX-License-Identifier: Apache-2.0
#include "config/pressure_section.h"

#include "judge/eviction/threshold.h"

#include <array>

namespace headroom::config {
namespace {

constexpr std::array<std::string_view, 1> kResources{"memory"};
constexpr std::array<std::string_view, 3> kKeys{"threshold", "grace", "window"};
constexpr Duration kGrace = std::chrono::seconds(10);

// The part of the time that may be lost: more than nothing, less than all of it. Absent: off.
std::optional<Fraction> read_share(const Section& memory) {
  const auto text = memory.string("threshold");
  if (!text) return std::nullopt;
  const auto value = parse_threshold_value(Signal::kMemoryPressure, *text);
  const auto* share = value && *value ? std::get_if<Fraction>(&**value) : nullptr;
  if (share && share->of_one > 0 && share->of_one < 1) return *share;
  memory.complain("threshold", "expected a percentage between 0% and 100%, such as 20%, found \"" +
                                   *text + "\"");
  return std::nullopt;
}

void read_above_zero(const Section& memory, std::string_view key, Duration& duration) {
  const auto read = memory.duration(key);
  if (!read) return;
  if (*read > Duration::zero())
    duration = *read;
  else
    memory.complain(key, "must be more than zero");
}

void read_memory(const Section& memory, Config& config) {
  memory.expect_only(kKeys);
  Threshold threshold{
      .signal = Signal::kMemoryPressure, .value = {}, .grace = kGrace, .min_reclaim = std::nullopt};
  const auto share = read_share(memory);
  read_above_zero(memory, "grace", threshold.grace);
  read_above_zero(memory, "window", config.policy.pressure_window);
  if (!share) return;
  // Crossed when less than this much of the time is left.
  threshold.value = Fraction{1 - share->of_one};
  config.memory_pressure = threshold;
}

}  // namespace

std::span<const std::string_view> memory_pressure_keys() {
  return kKeys;
}

void read_pressure(const Section& headroom, Config& config) {
  const auto pressure = headroom.map("pressure");
  if (!pressure) return;
  pressure->expect_only(kResources);
  if (const auto memory = pressure->map("memory")) read_memory(*memory, config);
}

}  // namespace headroom::config
