// SPDX-License-Identifier: Apache-2.0
#include "daemon/limits/pod_swap_request.h"

#include <unordered_map>
#include <utility>

namespace headroom::daemon {
namespace {

using act::OverriddenFile;
using judge_limits::PodSwapPlan;

// Near enough: the last moments above it are not missed.
bool is_at(std::int64_t swap, Bytes high) {
  return swap >= high.count - high.count / 16;
}

// Up to Linux 6.10 a cgroup does not follow the memory.zswap.writeback of the one above it: it
// takes the value once, when it is created. Records come in the order of the tree.
void add_kept_in_zswap(const Snapshot& snapshot, const report::CgroupNames& names,
                       std::unordered_map<std::uint64_t, CgroupId> pod_of,
                       std::vector<PodSwapRequest::Cgroup>& cgroups) {
  for (const hr_record& record : *snapshot.cgroups) {
    if (!pod_of.contains(record.id)) {
      const auto parent = pod_of.find(record.parent_id);
      if (parent == pod_of.end()) continue;
      pod_of.emplace(record.id, CgroupId{parent->second});
    }
    const CgroupId id{record.id};
    if (const auto path = names.path_of(id); !path.empty())
      cgroups.push_back({.id = id,
                         .pod = pod_of.at(record.id),
                         .path = std::string(path),
                         .file = OverriddenFile::kZswapWriteback,
                         .value = 0});
  }
}

}  // namespace

std::optional<std::int64_t> swap_total(const Snapshot& snapshot) {
  const auto& swap = of(snapshot.observations, Signal::kSwapAvailable);
  return swap && swap->capacity > 0 ? std::optional(swap->capacity) : std::nullopt;
}

PodSwapRequest PodSwapRequests::next(const judge_limits::PodSwapPolicy& policy,
                                     const Snapshot& snapshot, const report::CgroupNames& names) {
  PodSwapRequest request;
  std::unordered_set<std::uint64_t> limited;
  std::unordered_map<std::uint64_t, CgroupId> kept;
  for (const PodReading& pod : snapshot.pods) {
    const std::uint64_t id = pod.cgroup.value;
    const PodSwapPlan plan =
        plan_pod_swap(policy, pod, swap_total(snapshot), limited_.contains(id));
    if (plan.keep_in_zswap) kept.emplace(id, pod.cgroup);
    if (!plan.high) continue;
    limited.insert(id);
    const hr_u64 swap = pod.record->swap_usage;
    if (const auto path = names.path_of(pod.cgroup); !path.empty())
      request.cgroups.push_back(
          {.id = pod.cgroup,
           .pod = pod.cgroup,
           .path = std::string(path),
           .file = OverriddenFile::kSwapHigh,
           .value = static_cast<std::uint64_t>(plan.high->count),
           .is_slowed = swap != HR_UNKNOWN && is_at(static_cast<std::int64_t>(swap), *plan.high)});
  }
  if (!kept.empty()) add_kept_in_zswap(snapshot, names, std::move(kept), request.cgroups);
  limited_ = std::move(limited);
  return request;
}

}  // namespace headroom::daemon
