// SPDX-License-Identifier: Apache-2.0
// The settings of the kubelet's memory manager: memoryManagerPolicy and reservedMemory.
#include "config/sections/sections.h"
#include "config/yaml/located_value.h"
#include "config/yaml/section.h"
#include "judge/memory/memory_policy.h"

#include <array>
#include <charconv>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <utility>

namespace headroom::config {
namespace {

using ManagerPolicy = CpusConfig::MemoryManagerPolicy;

constexpr std::array<Choice<ManagerPolicy>, 2> kPolicies{
    {{"None", ManagerPolicy::kNone}, {"Static", ManagerPolicy::kStatic}}};
constexpr std::array<std::string_view, 2> kReservationKeys{"numaNode", "limits"};

// Why an amount cannot be reserved; empty: it can.
std::string reservation_error(const ReservedMemory& reserved, int node, const std::string& resource,
                              const Quantity& amount) {
  if (!is_memory_resource(resource)) return "expected memory or hugepages-SIZE";
  if (amount.sign() <= 0) return "expected more than zero";
  const auto other = reserved.find(node);
  if (other != reserved.end() && other->second.contains(resource))
    return "node " + std::to_string(node) + " has a reservation of it already";
  return "";
}

void read_reservation(const Section& section, ReservedMemory& reserved) {
  section.reject_unknown_keys(kReservationKeys);
  for (const std::string_view key : kReservationKeys)
    if (!section.has(key)) section.add_error_at(section.line(), "missing " + section.path_of(key));
  const auto node = section.integer("numaNode", 0, NodeSet::kMax - 1);
  const auto limits = section.map("limits");
  if (!node || !limits) return;
  for (const yaml::Entry& entry : limits->entries()) {
    const auto amount = limits->quantity(entry);
    if (!amount) continue;
    const int id = static_cast<int>(*node);
    const std::string what = reservation_error(reserved, id, entry.key, *amount);
    if (what.empty())
      reserved[id].emplace(entry.key, *amount);
    else
      limits->add_error(entry, what);
  }
}

// One node's reservations: "0:memory=1Gi,hugepages-2Mi=64Mi". An error says what is wrong.
std::string parse_reservation(std::string_view text, ReservedMemory& reserved) {
  const std::size_t colon = text.find(':');
  int node = -1;
  const std::string_view number = text.substr(0, colon);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), node);
  if (colon == std::string_view::npos || error != std::errc() ||
      end != number.data() + number.size() || node < 0 || node >= NodeSet::kMax)
    return "expected NODE:RESOURCE=QUANTITY,...";
  for (std::string_view rest = text.substr(colon + 1); !rest.empty();) {
    const std::string_view pair = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    const std::size_t sign = pair.find('=');
    if (sign == std::string_view::npos)
      return '"' + std::string(pair) + "\": expected name=quantity";
    const std::string resource(pair.substr(0, sign));
    const auto amount = Quantity::parse(pair.substr(sign + 1));
    if (!amount) return '"' + std::string(pair) + "\": " + amount.error().what;
    if (std::string what = reservation_error(reserved, node, resource, *amount); !what.empty())
      return '"' + std::string(pair) + "\": " + what;
    reserved[node].emplace(resource, *amount);
  }
  return "";
}

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

constexpr std::array<std::string_view, 2> kResources{"memory", "cpu"};
constexpr std::array<std::string_view, 3> kMemoryKeys{"threshold", "grace", "window"};
constexpr std::array<std::string_view, 4> kCpuKeys{"threshold", "grace", "evict", "evictPeriod"};
constexpr Duration kGrace = std::chrono::seconds(10);
constexpr Duration kCpuGrace = std::chrono::seconds(60);
constexpr Duration kCpuEvictionPeriod = std::chrono::minutes(5);

void read_memory(const Section& memory, Config& config) {
  memory.reject_unknown_keys(kMemoryKeys);
  Threshold threshold{
      .signal = Signal::kMemoryPressure, .value = {}, .grace = kGrace, .min_reclaim = std::nullopt};
  // The part of the time that may be lost. Absent: off.
  const auto share = read_percentage(memory, "threshold", "20%");
  read_positive_duration(memory, "grace", threshold.grace);
  read_positive_duration(memory, "window", config.policy.pressure_window);
  if (!share) return;
  // Crossed when less than this much of the time is left.
  threshold.value = Fraction{1 - *share};
  config.pressure.push_back(std::move(threshold));
}

void read_cpu(const Section& cpu, Config& config) {
  cpu.reject_unknown_keys(kCpuKeys);
  Threshold threshold{
      .signal = Signal::kCpuPressure, .value = {}, .grace = kCpuGrace, .min_reclaim = std::nullopt};
  const auto share = read_percentage(cpu, "threshold", "50%");
  read_positive_duration(cpu, "grace", threshold.grace);
  Duration period = kCpuEvictionPeriod;
  read_positive_duration(cpu, "evictPeriod", period);
  const bool evict = cpu.boolean("evict").value_or(false);
  if (evict && !cpu.has("threshold")) cpu.add_error("evict", "needs threshold beside it");
  if (!share) return;
  if (evict) config.policy.cpu_eviction_period = period;
  threshold.value = Fraction{1 - *share};
  config.pressure.push_back(std::move(threshold));
}

}  // namespace

void read_memory_manager(const Section& document, const std::string& file, Config& config,
                         CpusSettings& settings) {
  if (const auto policy = document.choice<ManagerPolicy>("memoryManagerPolicy", kPolicies)) {
    config.cpus.memory_policy = *policy;
    settings.memory_policy = {file, document.line_of("memoryManagerPolicy"), {}};
  }
  if (const auto sections = document.list_of_maps("reservedMemory"))
    for (const Section& section : *sections)
      read_reservation(section, config.cpus.reserved_memory);
}

ReservedMemory parse_reserved_memory(const CommandLine::FlagValues& values,
                                     std::vector<std::string>& errors) {
  ReservedMemory reserved;
  for (const std::string& value : values)
    for (std::string_view rest = value; !rest.empty();) {
      const std::string_view one = rest.substr(0, rest.find(';'));
      rest.remove_prefix(std::min(rest.size(), one.size() + 1));
      if (std::string what = parse_reservation(one, reserved); !what.empty())
        errors.push_back(std::move(what));
    }
  return reserved;
}

void apply_memory_manager_flags(const CommandLine& line, Config& config, CpusSettings& settings,
                                Diagnostics& diagnostics) {
  if (!line.memory_manager_policy.empty()) {
    const std::string& policy = line.memory_manager_policy.back();
    settings.memory_policy = {"--memory-manager-policy", 0, {}};
    if (policy == "None" || policy == "Static")
      config.cpus.memory_policy = policy == "None" ? ManagerPolicy::kNone : ManagerPolicy::kStatic;
    else
      diagnostics.push_back(
          {"--memory-manager-policy", 0, "expected one of None, Static, found \"" + policy + '"'});
  }
  if (line.reserved_memory.empty()) return;
  std::vector<std::string> errors;
  config.cpus.reserved_memory = parse_reserved_memory(line.reserved_memory, errors);
  for (std::string& error : errors)
    diagnostics.push_back({"--reserved-memory", 0, std::move(error)});
}

void resolve_memory_manager(const CpusSettings& settings, const Config& config,
                            Diagnostics& diagnostics) {
  const CpusConfig& cpus = config.cpus;
  if (cpus.mode == CpusConfig::Mode::kOff || cpus.memory_policy == ManagerPolicy::kNone) return;
  for (const auto& [node, limits] : cpus.reserved_memory)
    if (limits.contains("memory")) return;
  diagnostics.push_back({settings.memory_policy.file, settings.memory_policy.line,
                         "memoryManagerPolicy: the policy Static needs memory that is reserved: "
                         "set reservedMemory"});
}

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
  return kMemoryKeys;
}
std::span<const std::string_view> cpu_pressure_keys() {
  return kCpuKeys;
}

void read_pressure(const Section& headroom, Config& config) {
  const auto pressure = headroom.map("pressure");
  if (!pressure) return;
  pressure->reject_unknown_keys(kResources);
  if (const auto memory = pressure->map("memory")) read_memory(*memory, config);
  if (const auto cpu = pressure->map("cpu")) read_cpu(*cpu, config);
}

}  // namespace headroom::config
