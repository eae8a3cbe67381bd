// SPDX-License-Identifier: Apache-2.0
#include "report/metrics/renamed_metrics.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

namespace headroom::report {
namespace {

constexpr RenamedMetric kRenamed[] = {
    {"headroom_self_cpu_seconds_total", "headroom_thread_cpu_seconds_total", "part", "thread"},
    {"headroom_self_resident_memory_bytes", "process_resident_memory_bytes"},
    {"headroom_self_checks_total", "headroom_bpf_self_checks_total"},
    {"headroom_threshold_below", "headroom_threshold_crossed"},
    {"headroom_time_to_threshold_seconds", "headroom_threshold_forecast_seconds"},
    {"headroom_checks_total", "headroom_snapshots_total", "depth", "scope"},
    {"headroom_tick_allocations", "headroom_turn_allocations"},
    {"headroom_stats_staleness_seconds", "headroom_sweep_age_seconds"},
    {"headroom_lost_total",
     "headroom_dropped_total",
     "where",
     "component",
     {{{"minute", "flight_recorder"}, {"publication", "published_view"}}}},
    {"headroom_part_kills_total",
     "headroom_partial_evictions_total",
     "outcome",
     "outcome",
     {{{"pretended", "dry_run"}}}},
    {"headroom_ladder_reclaim_asked_bytes_total", "headroom_ladder_reclaim_requested_bytes_total"},
    {"headroom_ladder_held_limits", "headroom_memory_high_overrides"},
    {"headroom_ladder_throttled_limits", "headroom_memory_high_throttled"},
    {"headroom_farewells_total",
     "headroom_eviction_completions_total",
     "ending",
     "outcome",
     {{{"gone", "exited"}, {"outlasting", "timed_out"}}}},
    {"headroom_memory_returned_bytes_total", "headroom_eviction_memory_returned_bytes_total"},
    {"headroom_memory_predicted_bytes_total", "headroom_eviction_memory_predicted_bytes_total"},
    {"headroom_victims_helped_total",
     "headroom_kill_assists_total",
     "help",
     "result",
     {{{"uncapped", "limits_lifted"}, {"missed", "skipped"}}}},
    {"headroom_processes_boosted_total", "headroom_kill_assist_processes_boosted_total"},
    {"headroom_processes_reaped_total", "headroom_kill_assist_processes_reaped_total"},
    {"headroom_reclaims_total",
     "headroom_node_reclaims_total",
     "outcome",
     "outcome",
     {{{"begun", "started"}}}},
    {"headroom_loop_hangs_total", "headroom_loop_stalls_total"},
    {"headroom_errands_failed_total", "headroom_async_actions_failed_total",
     "errand",  // check: allow-word
     "action"},
    {"headroom_crossing_to_decide_seconds", "headroom_crossing_to_decision_seconds"},
    {"headroom_detect_to_decide_seconds", "headroom_sample_to_decision_seconds"},
    {"headroom_decide_to_signal_seconds", "headroom_decision_to_signal_seconds"},
    {"headroom_crossings_unforeseen_total", "headroom_unpredicted_crossings_total"},
    {"headroom_program_loaded", "headroom_bpf_program_loaded", "how", "hook"},
    {"headroom_events_lost_total", "headroom_bpf_events_lost_total", "where", "buffer"},
    {"headroom_node_stall_seconds", "headroom_node_memory_stall_seconds"},
    {"headroom_node_throttle_seconds", "headroom_node_cpu_throttle_seconds"},
    {"headroom_slice_desired", "headroom_slice_setting_desired", "knob", "setting"},
    {"headroom_slice_actual", "headroom_slice_setting_actual", "knob", "setting"},
    {"headroom_slice_differing", "headroom_slice_settings_differing"},
    {"headroom_slice_drift_total", "headroom_slice_setting_drift_total", "knob", "setting"},
    {"headroom_slice_lowerings_total",
     "headroom_slice_limit_lowerings_total",
     "outcome",
     "outcome",
     {{{"reached", "done"}, {"missed", "failed"}}}},
    {"headroom_slice_bus_calls_total", "headroom_slice_dbus_calls_total"},
    {"headroom_slice_bus_seconds_total", "headroom_slice_dbus_seconds_total"},
    {"headroom_cpus_short_containers", "headroom_containers_without_exclusive_cpus"},
    {"headroom_cpus_writes_total", "headroom_cpuset_writes_total"},
    {"headroom_cpus_failed_total", "headroom_cpuset_write_failures_total"},
    {"headroom_cpus_repaired_total", "headroom_cpuset_repairs_total"},
    {"headroom_cpus_state_unsaved", "headroom_cpu_state_file_stale"},
    {"headroom_container_cpus", "headroom_container_exclusive_cpus"},
    {"headroom_http_refused_total", "headroom_http_requests_rejected_total"},
    {"headroom_kube_evictions_told_total", "headroom_kube_evictions_reported_total"},
    {"headroom_kube_evictions_told_delay_seconds_total",
     "headroom_kube_evictions_report_delay_seconds_total"},
    {"headroom_kube_evictions_waiting", "headroom_kube_evictions_pending"},
    {"headroom_kube_evictions_gone_total", "headroom_kube_evictions_pod_gone_total"},
    {"headroom_kube_audit_unread_total", "headroom_kube_audit_lines_skipped_total"},
    {"headroom_signal_available", "headroom_signal_available_bytes"},
    {"headroom_signal_available", "headroom_signal_available_inodes"},
    {"headroom_signal_available", "headroom_signal_available_tasks"},
    {"headroom_signal_available", "headroom_signal_available_ratio", "", "", {}, 1e6},
    {"headroom_signal_capacity", "headroom_signal_capacity_bytes"},
    {"headroom_signal_capacity", "headroom_signal_capacity_inodes"},
    {"headroom_signal_capacity", "headroom_signal_capacity_tasks"},
    {"headroom_signal_capacity", "headroom_signal_capacity_ratio", "", "", {}, 1e6},
    {"headroom_threshold_limit", "headroom_threshold_bytes"},
    {"headroom_threshold_limit", "headroom_threshold_inodes"},
    {"headroom_threshold_limit", "headroom_threshold_tasks"},
    {"headroom_threshold_limit", "headroom_threshold_ratio", "", "", {}, 1e6},
};

// These keep their labels.
constexpr RenamedMetric kRenamedOfCgroups[] = {
    {"headroom_stall_seconds_total", "headroom_memory_stall_seconds_total"},
    {"headroom_stalls_total", "headroom_memory_stalls_total"},
    {"headroom_throttle_seconds_total", "headroom_cpu_throttle_seconds_total"},
    {"headroom_throttles_total", "headroom_cpu_throttles_total"},
};

std::string deprecated(std::string_view new_name) {
  return "Deprecated: renamed to " + std::string(new_name) + ".";
}

void restore_label(prometheus::ClientMetric& sample, const RenamedMetric& renamed) {
  for (prometheus::ClientMetric::Label& label : sample.label) {
    if (label.name != renamed.new_label) continue;
    label.name = renamed.old_label;
    for (const RenamedLabelValue& value : renamed.values)
      if (!value.new_value.empty() && label.value == value.new_value) label.value = value.old_value;
  }
}

// Rows that share an old name are next to each other in the table.
prometheus::MetricFamily& old_family(Families& families, std::size_t first_old,
                                     const RenamedMetric& renamed,
                                     const prometheus::MetricFamily& current) {
  if (families.size() > first_old && families.back().name == renamed.old_name)
    return families.back();
  families.push_back({.name = std::string(renamed.old_name),
                      .help = deprecated(current.name),
                      .type = current.type,
                      .metric = {}});
  return families.back();
}

}  // namespace

std::span<const RenamedMetric> renamed_metrics() {
  return kRenamed;
}

void add_old_names(Families& families) {
  const std::size_t count = families.size();
  for (const RenamedMetric& renamed : kRenamed) {
    const auto end = families.begin() + static_cast<std::ptrdiff_t>(count);
    const auto current = std::find_if(
        families.begin(), end, [&](const auto& family) { return family.name == renamed.new_name; });
    if (current == end) continue;
    const prometheus::MetricFamily family = *current;  // a copy: families grows
    prometheus::MetricFamily& old = old_family(families, count, renamed, family);
    for (prometheus::ClientMetric sample : family.metric) {
      restore_label(sample, renamed);
      sample.gauge.value *= renamed.scale;
      old.metric.push_back(std::move(sample));
    }
  }
}

std::vector<CgroupFamilyAlias> old_cgroup_names() {
  std::vector<CgroupFamilyAlias> aliases;
  for (const RenamedMetric& renamed : kRenamedOfCgroups)
    aliases.push_back({.family = renamed.new_name,
                       .name = renamed.old_name,
                       .help = deprecated(renamed.new_name)});
  return aliases;
}

}  // namespace headroom::report
