// SPDX-License-Identifier: Apache-2.0
#include "judge/cpuset/policy/policy_options.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace headroom {
namespace {

enum class Stage : std::uint8_t { kAlpha, kBeta, kStable };

struct Option {
  std::string_view name;
  Stage stage;
  bool CpuPolicyOptions::*field;
};
constexpr std::array<Option, 6> kOptions{{
    {"full-pcpus-only", Stage::kStable, &CpuPolicyOptions::full_pcpus_only},
    {"distribute-cpus-across-numa", Stage::kBeta, &CpuPolicyOptions::distribute_across_numa},
    {"align-by-socket", Stage::kAlpha, &CpuPolicyOptions::align_by_socket},
    {"distribute-cpus-across-cores", Stage::kAlpha, &CpuPolicyOptions::distribute_across_cores},
    {"strict-cpu-reservation", Stage::kStable, &CpuPolicyOptions::strict_reservation},
    {"prefer-align-cpus-by-uncorecache", Stage::kBeta, &CpuPolicyOptions::prefer_align_by_uncore},
}};

struct Conflict {
  bool CpuPolicyOptions::*one;
  bool CpuPolicyOptions::*other;
};
constexpr std::array<Conflict, 4> kConflicts{{
    {&CpuPolicyOptions::full_pcpus_only, &CpuPolicyOptions::distribute_across_cores},
    {&CpuPolicyOptions::distribute_across_numa, &CpuPolicyOptions::distribute_across_cores},
    {&CpuPolicyOptions::prefer_align_by_uncore, &CpuPolicyOptions::distribute_across_cores},
    {&CpuPolicyOptions::prefer_align_by_uncore, &CpuPolicyOptions::distribute_across_numa},
}};

std::string name_of(bool CpuPolicyOptions::*field) {
  return std::string(std::ranges::find(kOptions, field, &Option::field)->name);
}

// strconv.ParseBool.
std::optional<bool> parse_bool(std::string_view text) {
  for (const std::string_view yes : {"1", "t", "T", "TRUE", "true", "True"})
    if (text == yes) return true;
  for (const std::string_view no : {"0", "f", "F", "FALSE", "false", "False"})
    if (text == no) return false;
  return std::nullopt;
}

std::string bad_value(const std::string& name, const std::string& text) {
  return "bad value for option \"" + name + "\": strconv.ParseBool: parsing \"" + text +
         "\": invalid syntax";
}

std::optional<std::string> unavailable(const Option& option, CpuOptionGates gates) {
  const bool open =
      option.stage == Stage::kStable || (option.stage == Stage::kBeta ? gates.beta : gates.alpha);
  if (open) return std::nullopt;
  const std::string stage = option.stage == Stage::kAlpha ? "Alpha" : "Beta";
  return "CPU Manager Policy " + stage + "-level Options not enabled, but option \"" +
         std::string(option.name) + "\" provided";
}

}  // namespace

tl::expected<CpuPolicyOptions, PolicyErrors> parse_cpu_options(
    const std::map<std::string, std::string>& options, CpuOptionGates gates) {
  CpuPolicyOptions parsed;
  PolicyErrors policy_errors;
  for (const auto& [name, text] : options) {
    const auto* const option = std::ranges::find(kOptions, name, &Option::name);
    if (option == kOptions.end()) {
      policy_errors.push_back("unknown CPU Manager Policy option: \"" + name + "\"");
      continue;
    }
    if (const auto closed = unavailable(*option, gates)) policy_errors.push_back(*closed);
    const auto value = parse_bool(text);
    if (value)
      parsed.*option->field = *value;
    else
      policy_errors.push_back(bad_value(name, text));
  }
  if (policy_errors.empty()) return parsed;
  return tl::make_unexpected(policy_errors);
}

PolicyErrors conflicts(const CpuPolicyOptions& options, const Topology& topology,
                       const TopologyRules& rules) {
  PolicyErrors policy_errors;
  for (const Conflict& conflict : kConflicts)
    if (options.*conflict.one && options.*conflict.other)
      policy_errors.push_back("static policy options " + name_of(conflict.one) + " and " +
                              name_of(conflict.other) + " can not be used at the same time");
  if (!options.align_by_socket) return policy_errors;
  if (rules.policy == TopologyPolicy::kSingleNumaNode)
    policy_errors.emplace_back(  // the kubelet's own spelling
        "Topolgy manager single-numa-node policy is incompatible with CPUManager align-by-socket "
        "policy option");
  if (topology.count(Level::kSocket) > topology.count(Level::kNuma))
    policy_errors.emplace_back(
        "Align by socket is not compatible with hardware where number of sockets are more than "
        "number of NUMA");
  return policy_errors;
}

TakeRules take_rules(const CpuPolicyOptions& options, const Topology& topology) {
  return {.order = options.distribute_across_cores ? CpuOrder::kSpread : CpuOrder::kPacked,
          .prefer_uncore = options.prefer_align_by_uncore,
          .across_numa = options.distribute_across_numa,
          .group = options.full_pcpus_only ? topology.cpus_per(Level::kCore) : 1};
}

}  // namespace headroom
