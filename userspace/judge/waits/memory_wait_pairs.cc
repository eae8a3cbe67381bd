// SPDX-License-Identifier: Apache-2.0
#include "judge/waits/memory_wait_pairs.h"

#include "judge/waits/earlier_rows.h"

#include <algorithm>
#include <utility>

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
  const std::vector<std::uint64_t> pods_before = std::exchange(pods_, {});
  const std::vector<Totals> totals_before = std::exchange(totals_, {});
  read_memory(pods);
  if (!stalls->ids.empty()) add_waits(*stalls, pods_of(records, pods));
  std::vector<WaitPairs::Waiter> waiters;
  std::vector<WaitPairs::Holder> holders;
  waiters.reserve(pods_.size());
  holders.reserve(pods_.size());
  EarlierRows earlier_rows(pods_before);
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    const Totals& now = totals_[i];
    const auto earlier = earlier_rows.find(pods_[i], i);
    const Totals was = earlier ? totals_before[*earlier] : Totals{};
    waiters.push_back({.pod = CgroupId{pods_[i]}, .waited = now.waited - was.waited});
    holders.push_back({.pod = CgroupId{pods_[i]},
                       .held = std::max(0.0, now.usage - was.usage) +
                               kPage * std::max(0.0, now.refaulted - was.refaulted)});
  }
  const bool all_listed = stalls->lost == std::exchange(lost_, stalls->lost);
  if (last_ && all_listed)
    pairs_.add(at - *last_, waiters, holders, [](CgroupId, CgroupId) { return true; });
  last_ = at;
  EarlierRows present(pods_);
  pairs_.drop_gone([&](CgroupId pod) { return present.find(pod.value, pods_.size()).has_value(); });
}

void MemoryWaitPairs::read_memory(std::span<const PodReading> pods) {
  pods_.reserve(pods.size());
  totals_.reserve(pods.size());
  for (const PodReading& pod : pods) {
    pods_.push_back(pod.cgroup.value);
    Totals& now = totals_.emplace_back();
    if (!pod.record) continue;
    if (pod.record->valid & HR_MEMORY_USAGE) now.usage = known_or_zero(pod.record->memory_usage);
    if (pod.record->valid & HR_RECLAIM)
      now.refaulted =
          known_or_zero(pod.record->refault_anon) + known_or_zero(pod.record->refault_file);
  }
}

void MemoryWaitPairs::add_waits(const ByCgroup<hr_stalls>& stalls, const PodOf& pod_of) {
  const IdTable rows = rows_of(pods_);
  for (std::size_t i = 0; i < stalls.ids.size(); ++i) {
    const auto pod = pod_of.find(stalls.ids[i]);
    const auto row = pod == pod_of.end() ? std::nullopt : rows.find(pod->second);
    if (!row) continue;
    for (const hr_stall_cause cause : kNodeWideCauses)
      totals_[*row].waited += static_cast<double>(stalls.values[i].causes[cause].ns);
  }
}

}  // namespace headroom
