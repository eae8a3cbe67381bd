// SPDX-License-Identifier: Apache-2.0
// headroom_memory_stall_*, headroom_cpu_throttle_*: which cgroups waited, and why. Sums by cgroup
// and cause, only for cgroups that have waited; the distribution of lengths for the node alone,
// because buckets for every cgroup and cause would be a hundred series each. headroomctl shows them
// by pod.
#include "report/metrics/metric_family.h"
#include "report/metrics/metrics.h"
#include "report/view/pod_index.h"

#include <algorithm>
#include <limits>

namespace headroom::report {
namespace {

// Every second bucket: factors of four are enough to distinguish a hiccup from a stall.
Distribution distribution_of(const hr_waits& waits) {
  Distribution found{.buckets = {}, .sum = seconds_of(waits)};
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

// If lifecycle events are not watched, the kernel's victims are unknown.
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

void add_wait_families(const NodeView& node, Families& families) {
  add_node_waits(node.waits, families);
  add_programs(node.programs, families);
  add_kernel_oom_kills(node, families);
}

}  // namespace headroom::report
