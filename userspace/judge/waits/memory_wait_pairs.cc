// SPDX-License-Identifier: Apache-2.0
#include "judge/waits/memory_wait_pairs.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace headroom {
namespace {

constexpr double kPage = 4096;

double known_or_zero(hr_u64 value) {
  return value == HR_UNKNOWN ? 0 : static_cast<double>(value);
}

// The pod of each cgroup in a pod. Parents come before their children.
std::unordered_map<std::uint64_t, std::uint64_t> pods_of(std::span<const hr_record> records,
                                                         std::span<const PodReading> pods) {
  std::unordered_map<std::uint64_t, std::uint64_t> pod_of;
  for (const PodReading& pod : pods)
    pod_of.emplace(pod.cgroup.value, pod.cgroup.value);
  for (const hr_record& record : records)
    if (const auto parent = pod_of.find(record.parent_id); parent != pod_of.end())
      pod_of.emplace(record.id, parent->second);
  return pod_of;
}

}  // namespace

void MemoryWaitPairs::update(Instant at, std::span<const hr_record> records,
                             std::span<const PodReading> pods,
                             const std::optional<ByCgroup<hr_stalls>>& stalls) {
  if (!stalls) {
    last_.reset();
    return;
  }
  std::unordered_map<std::uint64_t, Totals> totals;
  for (const PodReading& pod : pods) {
    if (!pod.record) continue;
    Totals& now = totals[pod.cgroup.value];
    if (pod.record->valid & HR_MEMORY_USAGE) now.usage = known_or_zero(pod.record->memory_usage);
    if (pod.record->valid & HR_RECLAIM)
      now.refaulted =
          known_or_zero(pod.record->refault_anon) + known_or_zero(pod.record->refault_file);
  }
  if (!stalls->ids.empty()) {
    const auto pod_of = pods_of(records, pods);
    for (std::size_t i = 0; i < stalls->ids.size(); ++i)
      if (const auto pod = pod_of.find(stalls->ids[i]); pod != pod_of.end())
        for (const hr_stall_cause cause : kNodeWideCauses)
          totals[pod->second].waited += static_cast<double>(stalls->values[i].causes[cause].ns);
  }
  std::vector<WaitPairs::Waiter> waiters;
  std::vector<WaitPairs::Holder> holders;
  for (const auto& [pod, now] : totals) {
    const auto before = last_totals_.find(pod);
    const Totals was = before == last_totals_.end() ? Totals{} : before->second;
    waiters.push_back({.pod = CgroupId{pod}, .waited = now.waited - was.waited});
    holders.push_back({.pod = CgroupId{pod},
                       .held = std::max(0.0, now.usage - was.usage) +
                               kPage * std::max(0.0, now.refaulted - was.refaulted)});
  }
  if (last_) pairs_.add(at - *last_, waiters, holders, [](CgroupId, CgroupId) { return true; });
  last_ = at;
  last_totals_ = std::move(totals);
  pairs_.drop_gone([&](CgroupId pod) { return last_totals_.contains(pod.value); });
}

}  // namespace headroom
