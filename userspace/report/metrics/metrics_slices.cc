// SPDX-License-Identifier: Apache-2.0
// headroom_slice_*: the cgroups between the root and the pods, desired and actual.
#include "report/metrics/metric_family.h"
#include "report/metrics/metrics.h"
#include "report/view/pod_index.h"
#include "report/view/slices_view.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace headroom::report {
namespace {

// The content of a cgroup file as a number; the quota of cpu.max.
std::optional<double> number(std::string_view text) {
  text = text.substr(0, text.find(' '));
  if (text == "max") return std::numeric_limits<double>::infinity();
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return static_cast<double>(count);
}

void add_settings(MetricFamilyBuilder& family, const SliceView& slice, const CgroupValues& values) {
  for (const CgroupSetting& setting : cgroup_settings(values))
    family.add(number(setting.value), {{"setting", setting.file}, {"slice", slice.path}});
}

struct Amount {
  std::string_view resource;
  std::string_view unit;
  std::optional<double> value;
};

template <class T>
std::optional<double> count(const std::optional<T>& amount, double divisor = 1) {
  if (!amount) return std::nullopt;
  return static_cast<double>(amount->count) / divisor;
}

void add_amounts(MetricFamilyBuilder& family, const SliceView& slice,
                 std::initializer_list<Amount> amounts) {
  for (const Amount& amount : amounts)
    family.add(amount.value, {{"resource", amount.resource},
                              {"role", name(slice.role)},
                              {"slice", slice.path},
                              {"unit", amount.unit}});
}

std::uint64_t differing_settings(const SliceView& slice) {
  return slice.exists ? cgroup_settings(slice.differs).size()
                      : cgroup_settings(slice.desired).size();
}

std::uint64_t over_limit(const SliceView& slice) {
  const auto& wanted = slice.desired.memory_max;
  if (!slice.excess_usage || !wanted || wanted->is_max()) return 0;
  return static_cast<std::uint64_t>((*slice.excess_usage - *wanted->most()).count);
}

// Uses every second bucket: bounds that grow by a factor of four are enough to tell short waits
// from long ones.
Distribution distribution_of(const hr_waits& waits) {
  Distribution found{.buckets = {}, .sum = waited_seconds(waits)};
  std::uint64_t so_far = 0;
  for (std::size_t i = 0; i + 1 < HR_WAIT_BUCKETS; ++i) {
    so_far += waits.buckets[i];
    if (i % 2 == 0) found.buckets.push_back({so_far, bucket_bound_seconds(i)});
  }
  so_far += waits.buckets[HR_WAIT_BUCKETS - 1];
  found.buckets.push_back({so_far, std::numeric_limits<double>::infinity()});
  return found;
}

void add_node_waits(const NodeWaits& waits, Families& families) {
  auto stalls = MetricFamilyBuilder::histogram(
      "headroom_node_memory_stall_seconds", "Duration of memory stalls of all cgroups, by cause.");
  if (waits.stalls)
    for (std::size_t cause = 0; cause < HR_STALL_CAUSES; ++cause)
      stalls.add(distribution_of(waits.stalls->causes[cause]),
                 {{"cause", kStallCauseNames[cause]}});
  stalls.append_to(families);
  auto throttles = MetricFamilyBuilder::histogram("headroom_node_cpu_throttle_seconds",
                                                  "Duration of CPU throttling of all cgroups.");
  if (waits.throttles) throttles.add(distribution_of(*waits.throttles));
  throttles.append_to(families);
}

void add_programs(const Programs& programs, Families& families) {
  auto loaded = MetricFamilyBuilder::gauge(
      "headroom_bpf_program_loaded",
      "1 if the BPF program is attached to this hook, 0 if it could not be loaded.");
  auto lost = MetricFamilyBuilder::counter(
      "headroom_bpf_events_lost_total",
      "Events for which a BPF program had no space in its map or ring buffer.");
  for (const ProgramView& program : programs) {
    if (program.name.empty()) continue;
    loaded.add(program.hook.empty() ? 0.0 : 1.0,
               {{"hook", program.hook}, {"program", program.name}});
    if (program.hook.empty()) continue;
    lost.add(program.lost_in_map, {{"buffer", "map"}, {"program", program.name}});
    lost.add(program.lost_in_ring, {{"buffer", "ring"}, {"program", program.name}});
  }
  loaded.append_to(families);
  lost.append_to(families);
}

// If lifecycle events are not watched, the kernel's victims are unknown and the family is absent.
void add_kernel_oom_kills(const NodeView& node, Families& families) {
  const Counters& counters = node.counters;
  const auto watched =
      std::any_of(node.programs.begin(), node.programs.end(),
                  [](const auto& each) { return each.name == "lifecycle" && !each.hook.empty(); });
  if (!watched) return;
  auto kills = MetricFamilyBuilder::counter(
      "headroom_kernel_oom_kills_total",
      "Processes killed by the kernel's OOM killer, by scope: the limit of one cgroup, the limit "
      "of all pods, the node. agreed: of the pod that headroom would have evicted.");
  kills.add(counters.kernel_oom_kills_at_limit, {{"scope", "limit"}});
  const auto add = [&](const Counters::OomKillCounts& oom_kills, const char* scope) {
    kills.add(oom_kills.same_choice, {{"agreed", "true"}, {"scope", scope}});
    kills.add(oom_kills.kills - oom_kills.same_choice, {{"agreed", "false"}, {"scope", scope}});
  };
  add(counters.kernel_oom_kills_of_node, "node");
  add(counters.kernel_oom_kills_of_pods, "pods");
  kills.append_to(families);
  MetricFamilyBuilder::counter("headroom_victim_exits_total", "Exited processes of evicted pods.")
      .add(counters.victim_exits)
      .append_to(families);
}

}  // namespace

void add_slice_families(const SlicesView& view, Families& families) {
  auto desired = MetricFamilyBuilder::gauge("headroom_slice_setting_desired",
                                            "Desired value of the cgroup file. +Inf is max.");
  auto actual = MetricFamilyBuilder::gauge("headroom_slice_setting_actual",
                                           "Actual value of the cgroup file.");
  auto differing = MetricFamilyBuilder::gauge(
      "headroom_slice_settings_differing",
      "Settings of the slice whose actual value differs from the desired value.");
  auto share =
      MetricFamilyBuilder::gauge("headroom_slice_share", "Resources reserved for the slice.");
  auto usage = MetricFamilyBuilder::gauge("headroom_slice_usage", "Resources used by the slice.");
  auto drift = MetricFamilyBuilder::counter("headroom_slice_setting_drift_total",
                                            "Changes of a setting by another program.");
  auto excess_usage =
      MetricFamilyBuilder::gauge("headroom_slice_over_limit_bytes",
                                 "Memory in use above the desired memory.max of the slice.");
  auto lowerings = MetricFamilyBuilder::counter(
      "headroom_slice_limit_lowerings_total",
      "Attempts to reclaim memory so that memory.max of the slice can be lowered.");
  for (const SliceView& slice : view.slices) {
    excess_usage.add(over_limit(slice), {{"slice", slice.path}});
    lowerings.add(slice.lowering.reached, {{"outcome", "done"}, {"slice", slice.path}});
    lowerings.add(slice.lowering.missed, {{"outcome", "failed"}, {"slice", slice.path}});
    add_settings(desired, slice, slice.desired);
    add_settings(actual, slice, slice.actual);
    differing.add(differing_settings(slice), {{"role", name(slice.role)}, {"slice", slice.path}});
    add_amounts(share, slice,
                {{"cpu", "core", count(slice.share.cpu, 1000)},
                 {"memory", "byte", count(slice.share.memory)},
                 {"pids", "integer", count(slice.share.pids)}});
    add_amounts(usage, slice,
                {{"cpu", "core", slice.cpus},
                 {"memory", "byte", count(slice.memory)},
                 {"pids", "integer", count(slice.tasks)}});
    for (const auto& [file, times] : slice.drift)
      drift.add(times, {{"setting", file}, {"slice", slice.path}});
  }
  for (MetricFamilyBuilder* family :
       {&desired, &actual, &differing, &share, &usage, &drift, &excess_usage, &lowerings})
    family->append_to(families);
  MetricFamilyBuilder::counter("headroom_slice_dbus_calls_total",
                               "D-Bus calls to systemd that set slice properties.")
      .add(view.calls - view.calls_failed, {{"outcome", "done"}})
      .add(view.calls_failed, {{"outcome", "failed"}})
      .append_to(families);
  MetricFamilyBuilder::counter("headroom_slice_dbus_seconds_total",
                               "Time spent waiting for these D-Bus calls.")
      .add(seconds_of(view.calls_waited))
      .append_to(families);
}

void add_wait_families(const NodeView& node, Families& families) {
  add_node_waits(node.waits, families);
  add_programs(node.programs, families);
  add_kernel_oom_kills(node, families);
}

}  // namespace headroom::report
