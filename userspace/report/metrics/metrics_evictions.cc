// SPDX-License-Identifier: Apache-2.0
// kubelet_evictions and headroom_*: what was decided and done since the start, and how fast.
#include "report/metrics/metric_family.h"
#include "report/metrics/metrics.h"

#include <bitset>

namespace headroom::report {
namespace {

// Signals with a threshold have their series from the start, so that the first eviction is a step
// from zero; others only once something happened.
std::bitset<kCauses> visible_signals(const NodeView& node) {
  std::bitset<kCauses> visible;
  for (const ThresholdView& threshold : node.thresholds)
    visible.set(static_cast<std::size_t>(threshold.signal));
  for (std::size_t i = 0; i < kCauses; ++i)
    for (const std::uint64_t count : node.counters.evictions[i])
      if (count > 0) visible.set(i);
  return visible;
}

void add_kubelet(const NodeView& node, Families& families) {
  auto evictions = MetricFamilyBuilder::counter(
      "kubelet_evictions", "Cumulative number of pod evictions by eviction signal.");
  auto age =
      MetricFamilyBuilder::histogram("kubelet_eviction_stats_age_seconds",
                                     "Age of the stats a pod was evicted by, by eviction signal.");
  const auto visible = visible_signals(node);
  for (std::size_t i = 0; i < kCauses; ++i) {
    if (!visible[i]) continue;
    evictions.add(node.counters.evicted(i), {{"eviction_signal", cause_name(i)}});
    age.add(node.counters.stats_age[i], {{"eviction_signal", cause_name(i)}});
  }
  evictions.append_to(families);
  age.append_to(families);
}

// Has series only after the first eviction: most nodes have no such taint and no stuck container.
void add_other_evictions(const std::array<std::uint64_t, kResults>& counts, std::string_view signal,
                         MetricFamilyBuilder& evictions, MetricFamilyBuilder& would) {
  for (std::size_t result = 0; result < kResults; ++result) {
    const std::uint64_t count = counts[result];
    if (count == 0) continue;
    const bool dry_run = static_cast<Outcome::Result>(result) == Outcome::Result::kDryRun;
    evictions.add(count, {{"mode", dry_run ? "observe" : "enforce"},
                          {"outcome", kResultNames[result]},
                          {"signal", signal}});
    if (dry_run) would.add(count, {{"signal", signal}});
  }
}

void add_evictions(const NodeView& node, Families& families) {
  auto evictions = MetricFamilyBuilder::counter(
      "headroom_evictions_total",
      "Evictions by the result of their first action. Each failed attempt counts.");
  auto would = MetricFamilyBuilder::counter("headroom_would_evict_total",
                                            "Evictions that mode observe only reported.");
  const auto visible = visible_signals(node);
  for (std::size_t i = 0; i < kCauses; ++i) {
    if (!visible[i]) continue;
    for (std::size_t result = 0; result < kResults; ++result) {
      const bool dry_run = static_cast<Outcome::Result>(result) == Outcome::Result::kDryRun;
      evictions.add(node.counters.evictions[i][result], {{"mode", dry_run ? "observe" : "enforce"},
                                                         {"outcome", kResultNames[result]},
                                                         {"signal", cause_name(i)}});
    }
    would.add(node.counters.would_evict(i), {{"signal", cause_name(i)}});
  }
  add_other_evictions(node.counters.taint_evictions, "taint", evictions, would);
  add_other_evictions(node.counters.stuck_evictions, "memory.high", evictions, would);
  evictions.append_to(families);
  would.append_to(families);
}

// A pod that loses a part is not evicted, so the families above do not count it.
void add_part_kills(const Counters& counters, Families& families) {
  auto kills = MetricFamilyBuilder::counter(
      "headroom_partial_evictions_total",
      "Containers and processes killed instead of the whole pod, by result.");
  for (const EvictionUnit unit : {EvictionUnit::kContainer, EvictionUnit::kProcess})
    for (std::size_t result = 0; result < kResults; ++result)
      kills.add(counters.part_kills[static_cast<std::size_t>(unit)][result],
                {{"outcome", kResultNames[result]}, {"unit", name(unit)}});
  kills.append_to(families);
}

void add_ladder(const NodeView& node, Families& families) {
  auto steps =
      MetricFamilyBuilder::counter("headroom_ladder_steps_total",
                                   "Ladder steps before an eviction, by result. \"started\" counts "
                                   "every step that was not a dry run.");
  for (std::size_t step = 0; step < kLadderSteps; ++step)
    for (std::size_t end = 0; end < kLadderOutcomes; ++end)
      steps.add(node.counters.ladder[step][end],
                {{"outcome", kLadderOutcomeNames[end]}, {"step", kLadderStepNames[step]}});
  steps.append_to(families);
  MetricFamilyBuilder::counter("headroom_ladder_reclaim_requested_bytes_total",
                               "Page cache that the ladder asked the kernel to reclaim.")
      .add(node.counters.ladder_reclaim_requested)
      .append_to(families);
  std::uint64_t squeezed = 0, relaxed = 0;
  for (const MemoryHighOverride& held : node.memory_high_overrides)
    ++(held.relaxed ? relaxed : squeezed);
  MetricFamilyBuilder::gauge("headroom_memory_high_overrides",
                             "Cgroups whose memory.high is currently overridden by the ladder.")
      .add(squeezed, {{"step", "squeeze"}})
      .add(relaxed, {{"step", "relax"}})
      .append_to(families);
  MetricFamilyBuilder::gauge("headroom_memory_high_throttled",
                             "Cgroups in which tasks are throttled at memory.high.")
      .add(node.throttled)
      .append_to(families);
}

void add_pod_memory(const PodMemoryCounts& counts, Families& families) {
  const auto total = [&](const char* name, const char* help, std::uint64_t value) {
    MetricFamilyBuilder::counter(name, help).add(value).append_to(families);
  };
  MetricFamilyBuilder::counter("headroom_limit_changes_total",
                               "Writes of memory.max of pods that reached it, by what was done.")
      .add(counts.failed, {{"change", "failed"}})
      .add(counts.lowered, {{"change", "lowered"}})
      .add(counts.postponed, {{"change", "postponed"}})
      .add(counts.raised, {{"change", "raised"}})
      .append_to(families);
  MetricFamilyBuilder::gauge("headroom_raised_limits", "Cgroups with a raised memory.max.")
      .add(static_cast<double>(counts.raised_now))
      .append_to(families);
  MetricFamilyBuilder::gauge("headroom_raised_limit_bytes",
                             "Bytes by which memory.max is raised, all cgroups together.")
      .add(static_cast<double>(counts.raised_bytes))
      .append_to(families);
  total("headroom_background_reclaimed_bytes_total",
        "Bytes reclaimed from pods near their own limit before their tasks had to.",
        counts.background_reclaimed);
  total("headroom_cold_memory_pushed_bytes_total",
        "Bytes of cold memory pushed out of pods over their requests.", counts.cold_pushed);
  total("headroom_cold_memory_returned_bytes_total", "Bytes that came back of what was pushed out.",
        counts.cold_returned);
}

void add_cpu_burst(const CpuBurstCounts& counts, Families& families) {
  MetricFamilyBuilder::counter("headroom_cpu_burst_changes_total",
                               "Grants of cpu.max.burst to pods, by what was done.")
      .add(counts.failed, {{"change", "failed"}})
      .add(counts.granted, {{"change", "granted"}})
      .add(counts.withdrawn, {{"change", "withdrawn"}})
      .append_to(families);
  MetricFamilyBuilder::gauge("headroom_cpu_burst_pods", "Pods with a granted cpu.max.burst.")
      .add(static_cast<double>(counts.grants.size()))
      .append_to(families);
  MetricFamilyBuilder::gauge("headroom_cpu_burst_cpus",
                             "CPUs that pods may use above their quotas, all grants together.")
      .add(counts.cpus())
      .append_to(families);
}

void add_cpu_suppress(const CpuSuppressCounts& counts, Families& families) {
  MetricFamilyBuilder::counter(
      "headroom_cpu_suppress_changes_total",
      "Pods whose CPU time was suppressed or released, and refused writes.")
      .add(counts.failed, {{"change", "failed"}})
      .add(counts.released, {{"change", "released"}})
      .add(counts.suppressed, {{"change", "suppressed"}})
      .append_to(families);
  MetricFamilyBuilder::gauge("headroom_cpu_suppressed_pods",
                             "Pods whose CPU time is suppressed now.")
      .add(static_cast<double>(counts.pods.size()))
      .append_to(families);
}

void add_pod_swap(const PodSwapCounts& counts, Families& families) {
  MetricFamilyBuilder::gauge("headroom_swap_limited_pods",
                             "Pods with a memory.swap.high of headroomd.")
      .add(static_cast<double>(counts.limited))
      .append_to(families);
  MetricFamilyBuilder::counter(
      "headroom_swap_throttles_total",
      "Times that tasks were slowed down above the memory.swap.high that headroomd set.")
      .add(counts.throttles)
      .append_to(families);
  MetricFamilyBuilder::gauge("headroom_zswap_kept_pods",
                             "Protected pods whose swapped pages stay in zswap.")
      .add(static_cast<double>(counts.kept_in_zswap))
      .append_to(families);
  MetricFamilyBuilder::counter(
      "headroom_swap_setting_changes_total",
      "Writes of memory.swap.high and memory.zswap.writeback of cgroups, by what was done.")
      .add(counts.failed, {{"change", "failed"}})
      .add(counts.restored, {{"change", "restored"}})
      .add(counts.set, {{"change", "set"}})
      .append_to(families);
}

void add_eviction_ends(const Counters& counters, Families& families) {
  MetricFamilyBuilder::counter(
      "headroom_eviction_completions_total",
      "Completed evictions: all processes exited, or some were left when the time was up.")
      .add(counters.victims_gone, {{"outcome", "exited"}})
      .add(counters.victims_timed_out, {{"outcome", "timed_out"}})
      .append_to(families);
  MetricFamilyBuilder::counter("headroom_eviction_memory_returned_bytes_total",
                               "Working set returned by evictions.")
      .add(counters.memory_returned)
      .append_to(families);
  MetricFamilyBuilder::counter("headroom_eviction_memory_predicted_bytes_total",
                               "Working set that the same evictions were predicted to return.")
      .add(counters.memory_predicted)
      .append_to(families);
  MetricFamilyBuilder::counter("headroom_kill_assists_total",
                               "Killed pods whose cgroup limits were lifted so that they exit "
                               "sooner. skipped: too many at once.")
      .add(counters.kill_assists_done, {{"result", "limits_lifted"}})
      .add(counters.kill_assists_missed, {{"result", "skipped"}})
      .append_to(families);
  MetricFamilyBuilder::counter(
      "headroom_kill_assist_processes_boosted_total",
      "Killed processes that were scheduled with SCHED_RR so that they exit sooner.")
      .add(counters.processes_boosted)
      .append_to(families);
  MetricFamilyBuilder::counter("headroom_kill_assist_processes_reaped_total",
                               "Killed processes whose memory was freed with process_mrelease(2).")
      .add(counters.processes_reaped)
      .append_to(families);
  MetricFamilyBuilder::counter("headroom_oom_score_adj_writes_total",
                               "Writes of oom_score_adj by result. gone: the process had ended.")
      .add(counters.oom_scores_written, {{"outcome", "done"}})
      .add(counters.oom_scores_gone, {{"outcome", "gone"}})
      .add(counters.oom_scores_failed, {{"outcome", "failed"}})
      .append_to(families);
  add_pod_memory(counters.pod_memory, families);
  add_cpu_burst(counters.cpu_burst, families);
  add_cpu_suppress(counters.cpu_suppress, families);
  add_pod_swap(counters.pod_swap, families);
  MetricFamilyBuilder::counter("headroom_loop_stalls_total",
                               "Turns of the main loop that were overdue by more than one second.")
      .add(counters.loop_hangs)
      .append_to(families);
  MetricFamilyBuilder::counter(
      "headroom_sentinel_kills_total",
      "Pods killed by the sentinel thread while the main loop was overdue.")
      .add(counters.sentinel_kills)
      .append_to(families);
  MetricFamilyBuilder::counter(
      "headroom_node_reclaims_total",
      "Node-level reclaim runs (images and dead containers), by result. \"started\" counts all.")
      .add(counters.reclaims_started, {{"outcome", "started"}})
      .add(counters.reclaims_done, {{"outcome", "done"}})
      .add(counters.reclaims_failed, {{"outcome", "failed"}})
      .append_to(families);
  MetricFamilyBuilder::counter("headroom_async_actions_failed_total",
                               "Failed asynchronous actions of evictions.")
      .add(counters.pre_stops_failed, {{"action", "pre_stop"}})
      .add(counters.removals_failed, {{"action", "remove_empty_dirs"}})
      .append_to(families);
  auto transitions =
      MetricFamilyBuilder::counter("headroom_condition_transitions_total",
                                   "Transitions of a node condition in either direction.");
  for (std::size_t i = 0; i < kConditions; ++i)
    transitions.add(counters.transitions[i], {{"condition", kConditionNames[i]}});
  transitions.append_to(families);
}

void add_latencies(const Counters& counters, Families& families) {
  MetricFamilyBuilder::histogram("headroom_crossing_to_decision_seconds",
                                 "Time from the last sample above a hard threshold to the "
                                 "decision: upper bound of the reaction time.")
      .add(counters.crossing_to_decide)
      .append_to(families);
  MetricFamilyBuilder::histogram("headroom_sample_to_decision_seconds",
                                 "Time from the sample that crossed the threshold to the decision.")
      .add(counters.detect_to_decide)
      .append_to(families);
  MetricFamilyBuilder::histogram("headroom_decision_to_signal_seconds",
                                 "Time from the decision until the signal was sent.")
      .add(counters.decide_to_signal)
      .append_to(families);
  MetricFamilyBuilder::histogram("headroom_signal_to_exit_seconds",
                                 "Time from the last signal until all processes had exited.")
      .add(counters.signal_to_exit)
      .append_to(families);
}

// Signals with a threshold have series from the start.
void add_forecasts(const NodeView& node, Families& families) {
  auto error = MetricFamilyBuilder::histogram(
      "headroom_forecast_error_seconds",
      "Error of the forecasts made in the minute before a threshold was crossed.");
  auto unpredicted =
      MetricFamilyBuilder::counter("headroom_unpredicted_crossings_total",
                                   "Threshold crossings without a forecast in the minute before.");
  const auto visible = visible_signals(node);
  for (std::size_t i = 0; i < kSignals; ++i) {
    if (!visible[i]) continue;
    error.add(node.counters.forecast_error[i], {{"signal", kSignalNames[i]}});
    unpredicted.add(node.counters.unpredicted_crossings[i], {{"signal", kSignalNames[i]}});
  }
  error.append_to(families);
  unpredicted.append_to(families);
}

void add_shadow(const Counters& counters, Families& families) {
  MetricFamilyBuilder::histogram(
      "headroom_shadow_lead_seconds",
      "How much earlier headroom acted than the modelled 10-second loop of the kubelet.")
      .add(counters.shadow_lead)
      .append_to(families);
  MetricFamilyBuilder::counter(
      "headroom_shadow_choices_total",
      "Evictions by whether the modelled kubelet would have chosen the same pod.")
      .add(counters.shadow_same, {{"choice", "same"}})
      .add(counters.shadow_other, {{"choice", "other"}})
      .append_to(families);
  MetricFamilyBuilder::counter("headroom_shadow_evictions_total",
                               "Evictions that the modelled kubelet would have made. "
                               "needed=\"false\": an evicted pod was still returning its memory.")
      .add(counters.shadow_needed, {{"needed", "true"}})
      .add(counters.shadow_unneeded, {{"needed", "false"}})
      .append_to(families);
}

}  // namespace

void add_event_families(const NodeView& node, Families& families) {
  add_kubelet(node, families);
  add_evictions(node, families);
  add_part_kills(node.counters, families);
  add_eviction_ends(node.counters, families);
  add_ladder(node, families);
  add_latencies(node.counters, families);
  add_forecasts(node, families);
  add_shadow(node.counters, families);
}

}  // namespace headroom::report
