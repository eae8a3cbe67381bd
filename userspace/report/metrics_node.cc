// SPDX-License-Identifier: Apache-2.0
// headroom_*: the node, its thresholds and the daemon itself.
#include "report/family.h"
#include "report/human.h"
#include "report/metrics.h"

namespace headroom::report {
namespace {

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}
std::optional<double> seconds(const std::optional<Duration>& duration) {
  return duration ? std::optional(seconds(*duration)) : std::nullopt;
}

void add_signals(const NodeView& node, Families& families) {
  auto available =
      Family::gauge("headroom_signal_available",
                    "What the signal reads now, in bytes, inodes, tasks or millionths.");
  auto capacity = Family::gauge("headroom_signal_capacity",
                                "What it reads of, in bytes, inodes, tasks or millionths.");
  for (std::size_t i = 0; i < kSignals; ++i) {
    if (!node.observations[i]) continue;
    available.add(static_cast<double>(node.observations[i]->available),
                  {{"signal", kSignalNames[i]}});
    capacity.add(static_cast<double>(node.observations[i]->capacity),
                 {{"signal", kSignalNames[i]}});
  }
  available.into(families);
  capacity.into(families);
}

void add_thresholds(const NodeView& node, Families& families) {
  auto limit =
      Family::gauge("headroom_threshold_limit",
                    "Below this the threshold is crossed, in bytes, inodes, tasks or millionths.");
  auto below = Family::gauge("headroom_threshold_below", "1: the signal is below the threshold.");
  auto met = Family::gauge("headroom_threshold_met",
                           "1: it has been below for the threshold's grace period.");
  auto time_to = Family::gauge("headroom_time_to_threshold_seconds",
                               "Forecast at the present trend; no sample while not filling.");
  for (const ThresholdView& threshold : node.thresholds) {
    const std::string_view signal = name(threshold.signal), kind = kind_name(threshold.hard());
    limit.add(threshold.limit,
              {{"grace", human(threshold.grace)}, {"kind", kind}, {"signal", signal}});
    time_to.add(seconds(threshold.time_to), {{"kind", kind}, {"signal", signal}});
    if (!threshold.available) continue;  // unknown is neither below nor above
    below.add(threshold.below_since ? 1.0 : 0.0, {{"kind", kind}, {"signal", signal}});
    met.add(threshold.met ? 1.0 : 0.0, {{"kind", kind}, {"signal", signal}});
  }
  for (Family* family : {&limit, &below, &met, &time_to})
    family->into(families);
}

void add_standing(const NodeView& node, Families& families) {
  auto condition = Family::gauge("headroom_condition", "1: the node condition holds.");
  for (std::size_t i = 0; i < kConditions; ++i)
    condition.add(node.conditions[i] ? 1.0 : 0.0, {{"condition", kConditionNames[i]}});
  condition.into(families);
  auto mode = Family::gauge("headroom_mode", "1: the mode in force.");
  mode.add(node.mode == Mode::kObserve ? 1.0 : 0.0, {{"mode", "observe"}});
  mode.add(node.mode == Mode::kEnforce ? 1.0 : 0.0, {{"mode", "enforce"}});
  mode.into(families);
  Family::gauge("headroom_victims", "Pods on their way out.")
      .add(std::uint64_t{node.victims.size()})
      .into(families);
}

void add_sources(const NodeView& node, Families& families) {
  auto source =
      Family::gauge("headroom_source", "1: where a group of every cgroup's readings comes from.");
  for (std::size_t i = 0; i < kGroupNames.size(); ++i)
    if (!node.sources[i].empty())
      source.add(1.0, {{"group", kGroupNames[i]}, {"source", node.sources[i]}});
  source.into(families);
}

void add_sweeps(const NodeView& node, Instant now, Families& families) {
  Family::gauge("headroom_cgroups_tracked", "Cgroups the last sweep met.")
      .add(node.cgroups)
      .into(families);
  Family::gauge("headroom_cgroups_unresolved",
                "Cgroups of the last sweep whose directory is not held: gone meanwhile, or no "
                "descriptor left.")
      .add(node.counters.cgroups_unresolved)
      .into(families);
  if (node.swept_at)
    Family::gauge("headroom_stats_staleness_seconds", "Age of the cgroups' readings shown here.")
        .add(seconds(now - *node.swept_at))
        .into(families);
  Family::gauge("headroom_sweep_period_seconds",
                "Between the latest pass over every cgroup and the next.")
      .add(seconds(node.self.last_tick.sweep_period))
      .into(families);
  Family::histogram("headroom_sweep_duration_seconds", "Time a pass over every cgroup took.")
      .add(node.counters.sweep)
      .into(families);
}

void add_turns(const NodeView& node, Families& families) {
  auto wakeups = Family::counter("headroom_wakeups_total", "Turns of the loop, by what woke it.");
  for (std::size_t i = 0; i < kWakes; ++i)
    wakeups.add(node.counters.wakeups[i], {{"source", kWakeNames[i]}});
  wakeups.into(families);
  auto checks = Family::counter("headroom_checks_total",
                                "Looks at the node alone, or at every cgroup as well.");
  for (std::size_t i = 0; i < kDepths; ++i)
    checks.add(node.counters.checks[i], {{"depth", kDepthNames[i]}});
  checks.into(families);
}

void add_losses(const Counters& counters, Families& families) {
  Family::counter("headroom_self_checks_total",
                  "Comparisons of what BPF says with the files; see headroom_source.")
      .add(counters.self_checks)
      .into(families);
  Family::counter("headroom_missing_readings_total", "Readings that failed and count as unknown.")
      .add(counters.missing_readings)
      .into(families);
  Family::counter("headroom_lost_total", "What could not be told, by where it was lost.")
      .add(counters.audit_lost, {{"where", "audit"}})
      .add(counters.cgroups_lost, {{"where", "cgroups"}})
      .add(counters.notices_lost, {{"where", "dbus"}})
      .add(counters.evictions_overwritten, {{"where", "evictions"}})
      .add(counters.log_lost, {{"where", "log"}})
      .add(counters.minutes_lost, {{"where", "minute"}})
      .add(counters.publications_skipped, {{"where", "publication"}})
      .add(counters.recording_lost, {{"where", "recording"}})
      .add(counters.reports_failed, {{"where", "report"}})
      .into(families);
}

void add_self(const SelfCost& self, Families& families) {
  Family::gauge("headroom_self_resident_memory_bytes", "Resident memory of headroomd.")
      .add(self.resident)
      .into(families);
  Family::gauge("headroom_tick_allocations",
                "Heap allocations of the latest turn, from its look to its last act.")
      .add(self.last_tick.allocations)
      .into(families);
  Family::gauge("headroom_kill_path_allocations",
                "Heap allocations between verdict and signal in the latest turn that acted.")
      .add(self.kill_path_allocations)
      .into(families);
  Family::gauge("headroom_build_info", "1: the version that runs.")
      .add(1.0, {{"version", HEADROOM_VERSION}})
      .into(families);
}

}  // namespace

void add_node_families(const NodeView& node, Instant now, Families& families) {
  add_signals(node, families);
  add_thresholds(node, families);
  add_standing(node, families);
  add_sources(node, families);
  add_sweeps(node, now, families);
  add_turns(node, families);
  add_losses(node.counters, families);
  add_self(node.self, families);
}

}  // namespace headroom::report
