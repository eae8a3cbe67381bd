// SPDX-License-Identifier: Apache-2.0
#include "config/flags.h"

#include "config/headroom_section.h"
#include "judge/go_duration.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headroom::config {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// The pieces between commas; empty ones are none, so "" is an empty list.
std::vector<std::string_view> pieces(std::string_view text) {
  std::vector<std::string_view> all;
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), piece.size() + 1));
    if (!trimmed(piece).empty()) all.push_back(trimmed(piece));
  }
  return all;
}

// "memory.available<100Mi,nodefs.available<10%": given at all, it replaces the file's map, and
// given again it adds to itself (the last of a signal stays), as the kubelet's flags do.
void apply_map(const CommandLine::Uses& uses, const std::string& flag, char sign,
               std::optional<Told>& told, Complaints& complaints) {
  if (uses.empty()) return;
  told = Told{flag, 0, {}, {}};
  for (const std::string& use : uses) {
    for (const std::string_view pair : pieces(use)) {
      const std::size_t at = pair.find(sign);
      if (at == std::string_view::npos)
        complaints.push_back(
            {flag, 0, "\"" + std::string(pair) + "\": expected signal" + sign + "value"});
      else
        told->words.push_back({std::string(trimmed(pair.substr(0, at))),
                               std::string(trimmed(pair.substr(at + 1))), 0});
    }
  }
}

void apply_list(const CommandLine::Uses& uses, const std::string& flag, std::optional<Told>& told) {
  if (uses.empty()) return;
  told = Told{flag, 0, {}, {}};
  for (const std::string& use : uses)
    for (const std::string_view word : pieces(use))
      told->words.push_back({"", std::string(word), 0});
}

void apply_max_grace(const CommandLine& line, Policy& policy, Complaints& complaints) {
  if (line.eviction_max_pod_grace_period.empty()) return;
  const std::string& text = line.eviction_max_pod_grace_period.back();
  std::int32_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error == std::errc() && end == text.data() + text.size())
    policy.max_pod_grace = std::chrono::seconds(seconds);
  else
    complaints.push_back({"--eviction-max-pod-grace-period", 0,
                          "expected a whole number of seconds (32 bits), found \"" + text + "\""});
}

void apply_transition(const CommandLine& line, Policy& policy, Complaints& complaints) {
  if (line.eviction_pressure_transition_period.empty()) return;
  const auto period = parse_go_duration(line.eviction_pressure_transition_period.back());
  const auto complain = [&](std::string what) {
    complaints.push_back({"--eviction-pressure-transition-period", 0, std::move(what)});
  };
  if (!period)
    complain(period.error().what);
  else if (*period < Duration::zero())
    complain("must not be negative");
  else if (*period == Duration::zero())
    policy.pressure_transition = Policy{}.pressure_transition;  // zero is unset, as in the file
  else
    policy.pressure_transition = *period;
}

void apply_ours(const CommandLine& line, Config& config, Complaints& complaints) {
  if (!line.mode.empty()) {
    if (const auto mode = mode_named(line.mode.back()))
      config.policy.mode = *mode;
    else
      complaints.push_back(
          {"--mode", 0, "expected observe or enforce, found \"" + line.mode.back() + "\""});
  }
  if (!line.listen.empty()) {
    if (const auto what = objection_to_listen(line.listen.back()))
      complaints.push_back({"--listen", 0, *what});
    else
      config.listen = line.listen.back();
  }
}

}  // namespace

void apply_flags(const CommandLine& line, Config& config, EvictionTold& eviction,
                 Complaints& complaints) {
  apply_map(line.eviction_hard, "--eviction-hard", '<', eviction.hard, complaints);
  apply_map(line.eviction_soft, "--eviction-soft", '<', eviction.soft, complaints);
  apply_map(line.eviction_soft_grace_period, "--eviction-soft-grace-period", '=',
            eviction.soft_grace, complaints);
  apply_map(line.eviction_minimum_reclaim, "--eviction-minimum-reclaim", '=', eviction.min_reclaim,
            complaints);
  apply_list(line.enforce_node_allocatable, "--enforce-node-allocatable",
             eviction.enforce_node_allocatable);
  apply_max_grace(line, config.policy, complaints);
  apply_transition(line, config.policy, complaints);
  apply_ours(line, config, complaints);
}

}  // namespace headroom::config
