// SPDX-License-Identifier: Apache-2.0
#include "daemon/limits/pod_memory_request.h"

#include "act/limits/reclaim_threads.h"
#include "daemon/limits/pod_swap_request.h"

#include <unistd.h>

#include <algorithm>
#include <unordered_set>

namespace headroom::daemon {
namespace {

bool has_limit(const hr_record& record) {
  return (record.valid & HR_MEMORY_LIMITS) != 0 && record.memory_max < HR_NO_LIMIT &&
         record.populated != 0;
}

// Pods' cgroups and all below them. Records come in the order of the tree: a parent is first.
void add_limited(const Snapshot& snapshot, const report::CgroupNames& names,
                 std::vector<PodMemoryRequest::Limited>& limited) {
  std::unordered_set<std::uint64_t> of_pods;
  for (const PodReading& pod : snapshot.pods)
    of_pods.insert(pod.cgroup.value);
  for (const hr_record& record : *snapshot.cgroups) {
    if (!of_pods.contains(record.id)) {
      if (!of_pods.contains(record.parent_id)) continue;
      of_pods.insert(record.id);
    }
    if (!has_limit(record)) continue;
    const CgroupId id{record.id};
    if (const auto path = names.path_of(id); !path.empty())
      limited.push_back({.id = id, .path = std::string(path)});
  }
}

bool is_cold_memory_wanted(const judge_limits::ColdPolicy& policy, const Snapshot& snapshot) {
  const auto& seen = of(snapshot.observations, Signal::kKernelMemAvailable);
  return policy.below && seen &&
         static_cast<double>(seen->available) <
             static_cast<double>(*policy.below) * static_cast<double>(seen->capacity);
}

// Cold memory is pushed out so that no pod waits: not so far that podSwap slows the pod down.
std::optional<std::int64_t> swap_room(const judge_limits::PodSwapPolicy& policy,
                                      const Snapshot& snapshot, const PodReading& pod) {
  const auto plan = plan_pod_swap(policy, pod, swap_total(snapshot), /*is_limited=*/true);
  if (!plan.high || pod.record->swap_usage == HR_UNKNOWN) return std::nullopt;
  return std::max<std::int64_t>(
      act::swap_goal(plan.high->count) - static_cast<std::int64_t>(pod.record->swap_usage), 0);
}

void add_over_request(const judge_limits::PodSwapPolicy& swap, const Snapshot& snapshot,
                      const report::CgroupNames& names,
                      std::vector<PodMemoryRequest::OverRequest>& pods) {
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  constexpr std::uint32_t kNeeded = HR_MEMORY_USAGE | HR_RECLAIM;
  for (const PodReading& pod : snapshot.pods) {
    if (!pod.record || (pod.record->valid & kNeeded) != kNeeded || pod.critical) continue;
    const hr_record& record = *pod.record;
    const auto usage = static_cast<std::int64_t>(record.memory_usage);
    if (record.populated == 0 || usage <= pod.memory_request.count) continue;
    const auto known = [](hr_u64 pages) { return pages == HR_UNKNOWN ? 0 : pages; };
    if (const auto path = names.path_of(pod.cgroup); !path.empty())
      pods.push_back({.id = pod.cgroup,
                      .path = std::string(path),
                      .usage = usage,
                      .request = pod.memory_request.count,
                      .refaulted = (known(record.refault_anon) + known(record.refault_file)) * page,
                      .swap_room = swap_room(swap, snapshot, pod)});
  }
}

std::int64_t reserved_bytes(const config::Config& config, const Snapshot& snapshot,
                            const Verdict& verdict) {
  std::int64_t highest = 0;
  for (const ThresholdReading& reading : verdict.thresholds)
    if (config.policy.thresholds.size() > reading.index && reading.limit &&
        config.policy.thresholds[reading.index].signal == Signal::kMemoryAvailable)
      highest = std::max(highest, *reading.limit);
  const auto& memory = of(snapshot.observations, Signal::kMemoryAvailable);
  const std::int64_t capacity = memory ? memory->capacity : 0;
  return highest + static_cast<std::int64_t>(static_cast<double>(config.pod_memory.rescue_margin) *
                                             static_cast<double>(capacity));
}

}  // namespace

PodMemoryRequest pod_memory_request(const config::Config& config, const Snapshot& snapshot,
                                    const Verdict& verdict, const report::CgroupNames& names) {
  PodMemoryRequest request{.limits = config.pod_memory.limits,
                           .cold = config.pod_memory.cold,
                           .reserved = reserved_bytes(config, snapshot, verdict),
                           .limited = {},
                           .over_request = {},
                           .cold_wanted = false};
  request.limits.fastest_fill = config.policy.fastest_fill;
  if (!snapshot.cgroups) return request;
  if (request.limits.any()) add_limited(snapshot, names, request.limited);
  request.cold_wanted = is_cold_memory_wanted(request.cold, snapshot);
  if (request.cold.below) add_over_request(config.pod_swap, snapshot, names, request.over_request);
  return request;
}

}  // namespace headroom::daemon
