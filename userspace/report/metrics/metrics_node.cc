// SPDX-License-Identifier: Apache-2.0
// headroom_*: the node, its thresholds and the daemon itself.
#include "base/human_readable.h"
#include "report/metrics/metric_family.h"
#include "report/metrics/metrics.h"

namespace headroom::report {
namespace {

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}
std::optional<double> seconds(const std::optional<Duration>& duration) {
  return duration ? std::optional(seconds(*duration)) : std::nullopt;
}

void add_signals(const NodeView& node, Families& families) {
  auto available = MetricFamilyBuilder::gauge(
      "headroom_signal_available",
      "What the signal reads now, in bytes, inodes, tasks or millionths.");
  auto capacity = MetricFamilyBuilder::gauge(
      "headroom_signal_capacity", "What it reads of, in bytes, inodes, tasks or millionths.");
  for (std::size_t i = 0; i < kSignals; ++i) {
    if (!node.observations[i]) continue;
    available.add(static_cast<double>(node.observations[i]->available),
                  {{"signal", kSignalNames[i]}});
    capacity.add(static_cast<double>(node.observations[i]->capacity),
                 {{"signal", kSignalNames[i]}});
  }
  available.append_to(families);
  capacity.append_to(families);
}

void add_thresholds(const NodeView& node, Families& families) {
  auto limit = MetricFamilyBuilder::gauge(
      "headroom_threshold_limit",
      "Below this the threshold is crossed, in bytes, inodes, tasks or millionths.");
  auto below = MetricFamilyBuilder::gauge("headroom_threshold_below",
                                          "1: the signal is below the threshold.");
  auto met = MetricFamilyBuilder::gauge("headroom_threshold_met",
                                        "1: it has been below for the threshold's grace period.");
  auto time_to =
      MetricFamilyBuilder::gauge("headroom_time_to_threshold_seconds",
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
  for (MetricFamilyBuilder* family : {&limit, &below, &met, &time_to})
    family->append_to(families);
}

void add_node_state(const NodeView& node, Families& families) {
  auto condition = MetricFamilyBuilder::gauge("headroom_condition", "1: the node condition holds.");
  for (std::size_t i = 0; i < kConditions; ++i)
    condition.add(node.conditions[i] ? 1.0 : 0.0, {{"condition", kConditionNames[i]}});
  condition.append_to(families);
  auto mode = MetricFamilyBuilder::gauge("headroom_mode", "1: the mode in force.");
  mode.add(node.mode == Mode::kObserve ? 1.0 : 0.0, {{"mode", "observe"}});
  mode.add(node.mode == Mode::kEnforce ? 1.0 : 0.0, {{"mode", "enforce"}});
  mode.append_to(families);
  MetricFamilyBuilder::gauge("headroom_victims", "Pods on their way out.")
      .add(std::uint64_t{node.victims.size()})
      .append_to(families);
}

void add_sources(const NodeView& node, Families& families) {
  auto source = MetricFamilyBuilder::gauge(
      "headroom_source", "1: where a group of every cgroup's readings comes from.");
  for (std::size_t i = 0; i < kGroupNames.size(); ++i)
    if (!node.sources[i].empty())
      source.add(1.0, {{"group", kGroupNames[i]}, {"source", node.sources[i]}});
  source.append_to(families);
}

void add_sweeps(const NodeView& node, Instant now, Families& families) {
  MetricFamilyBuilder::gauge("headroom_cgroups_tracked", "Cgroups the last sweep met.")
      .add(node.cgroups)
      .append_to(families);
  MetricFamilyBuilder::gauge(
      "headroom_cgroups_unresolved",
      "Cgroups of the last sweep whose directory is not held: gone meanwhile, or no "
      "descriptor left.")
      .add(node.counters.cgroups_unresolved)
      .append_to(families);
  if (node.swept_at)
    MetricFamilyBuilder::gauge("headroom_stats_staleness_seconds",
                               "Age of the cgroups' readings shown here.")
        .add(seconds(now - *node.swept_at))
        .append_to(families);
  MetricFamilyBuilder::gauge("headroom_sweep_period_seconds",
                             "Between the latest pass over every cgroup and the next.")
      .add(seconds(node.process_usage.last_turn.sweep_period))
      .append_to(families);
  MetricFamilyBuilder::histogram("headroom_sweep_duration_seconds",
                                 "Time a pass over every cgroup took.")
      .add(node.counters.sweep)
      .append_to(families);
}

void add_wakeups(const NodeView& node, Families& families) {
  auto wakeups =
      MetricFamilyBuilder::counter("headroom_wakeups_total", "Turns of the loop, by what woke it.");
  for (std::size_t i = 0; i < kWakeSources; ++i)
    wakeups.add(node.counters.wakeups[i], {{"source", kWakeSourceNames[i]}});
  wakeups.append_to(families);
  auto checks = MetricFamilyBuilder::counter(
      "headroom_checks_total", "Looks at the node alone, or at every cgroup as well.");
  for (std::size_t i = 0; i < kSnapshotScopes; ++i)
    checks.add(node.counters.checks[i], {{"depth", kSnapshotScopeNames[i]}});
  checks.append_to(families);
}

void add_lost_counters(const Counters& counters, Families& families) {
  MetricFamilyBuilder::counter("headroom_self_checks_total",
                               "Comparisons of what BPF says with the files; see headroom_source.")
      .add(counters.self_checks)
      .append_to(families);
  MetricFamilyBuilder::counter("headroom_missing_readings_total",
                               "Readings that failed and count as unknown.")
      .add(counters.missing_readings)
      .append_to(families);
  MetricFamilyBuilder::counter("headroom_lost_total",
                               "What could not be told, by where it was lost.")
      .add(counters.audit_lost, {{"where", "audit"}})
      .add(counters.cgroups_lost, {{"where", "cgroups"}})
      .add(counters.dbus_signals_lost, {{"where", "dbus"}})
      .add(counters.evictions_overwritten, {{"where", "evictions"}})
      .add(counters.log_lost, {{"where", "log"}})
      .add(counters.flight_recordings_lost, {{"where", "minute"}})
      .add(counters.publications_skipped, {{"where", "publication"}})
      .add(counters.recording_lost, {{"where", "recording"}})
      .add(counters.reports_failed, {{"where", "report"}})
      .append_to(families);
}

void add_process_usage(const ProcessUsage& process_usage, Families& families) {
  MetricFamilyBuilder::gauge("headroom_self_resident_memory_bytes", "Resident memory of headroomd.")
      .add(process_usage.resident)
      .append_to(families);
  MetricFamilyBuilder::gauge("headroom_tick_allocations",
                             "Heap allocations of the latest turn, from its look to its last act.")
      .add(process_usage.last_turn.allocations)
      .append_to(families);
  MetricFamilyBuilder::gauge(
      "headroom_kill_path_allocations",
      "Heap allocations between verdict and signal in the latest turn that acted.")
      .add(process_usage.kill_path_allocations)
      .append_to(families);
  MetricFamilyBuilder::gauge("headroom_build_info", "1: the version that runs.")
      .add(1.0, {{"version", HEADROOM_VERSION}})
      .append_to(families);
}

}  // namespace

void add_node_families(const NodeView& node, Instant now, Families& families) {
  add_signals(node, families);
  add_thresholds(node, families);
  add_node_state(node, families);
  add_sources(node, families);
  add_sweeps(node, now, families);
  add_wakeups(node, families);
  add_lost_counters(node.counters, families);
  add_process_usage(node.process_usage, families);
}

}  // namespace headroom::report
