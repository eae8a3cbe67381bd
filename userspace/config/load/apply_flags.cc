// SPDX-License-Identifier: Apache-2.0
#include "config/load/apply_flags.h"

#include "config/flags/flag_values.h"
#include "config/sections/headroom_section.h"
#include "judge/resources/go_duration.h"

#include <charconv>
#include <chrono>
#include <string>
#include <utility>

namespace headroom::config {
namespace {

void apply_max_grace(const CommandLine& line, Policy& policy, Diagnostics& diagnostics) {
  if (line.eviction_max_pod_grace_period.empty()) return;
  const std::string& text = line.eviction_max_pod_grace_period.back();
  std::int32_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error == std::errc() && end == text.data() + text.size())
    policy.max_pod_grace = std::chrono::seconds(seconds);
  else
    diagnostics.push_back({"--eviction-max-pod-grace-period", 0,
                           "expected a whole number of seconds (32 bits), found \"" + text + "\""});
}

void apply_transition(const CommandLine& line, Policy& policy, Diagnostics& diagnostics) {
  if (line.eviction_pressure_transition_period.empty()) return;
  const auto period = parse_go_duration(line.eviction_pressure_transition_period.back());
  const auto add_error = [&](std::string what) {
    diagnostics.push_back({"--eviction-pressure-transition-period", 0, std::move(what)});
  };
  if (!period)
    add_error(period.error().what);
  else if (*period < Duration::zero())
    add_error("must not be negative");
  else if (*period == Duration::zero())
    policy.pressure_transition = Policy{}.pressure_transition;  // zero is unset, as in the file
  else
    policy.pressure_transition = *period;
}

void apply_headroom_flags(const CommandLine& line, Config& config, Diagnostics& diagnostics) {
  if (!line.mode.empty()) {
    if (const auto mode = parse_mode(line.mode.back()))
      config.policy.mode = *mode;
    else
      diagnostics.push_back(
          {"--mode", 0, "expected observe or enforce, found \"" + line.mode.back() + "\""});
  }
  if (!line.listen.empty()) {
    if (const auto what = listen_error(line.listen.back()))
      diagnostics.push_back({"--listen", 0, *what});
    else
      config.listen = line.listen.back();
  }
}

}  // namespace

void apply_flags(const CommandLine& line, Config& config, EvictionSettings& eviction,
                 Diagnostics& diagnostics) {
  apply_map_flag(line.eviction_hard, "--eviction-hard", "signal<value", eviction.hard, diagnostics);
  apply_map_flag(line.eviction_soft, "--eviction-soft", "signal<value", eviction.soft, diagnostics);
  apply_map_flag(line.eviction_soft_grace_period, "--eviction-soft-grace-period", "signal=value",
                 eviction.soft_grace, diagnostics);
  apply_map_flag(line.eviction_minimum_reclaim, "--eviction-minimum-reclaim", "signal=value",
                 eviction.min_reclaim, diagnostics);
  apply_list_flag(line.enforce_node_allocatable, "--enforce-node-allocatable",
                  eviction.enforce_node_allocatable);
  apply_max_grace(line, config.policy, diagnostics);
  apply_transition(line, config.policy, diagnostics);
  if (const auto isolation = parse_bool_flag(line.local_storage_isolation,
                                             "--local-storage-capacity-isolation", diagnostics))
    config.policy.local_storage_isolation = *isolation;
  parse_bool_flag(line.kernel_memcg_notification, "--kernel-memcg-notification", diagnostics);
  apply_headroom_flags(line, config, diagnostics);
}

}  // namespace headroom::config
