// SPDX-License-Identifier: Apache-2.0
#include "daemon/limits/cpu_burst_request.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace headroom::daemon {
namespace {

// The worker watches a pod for so long after it was throttled: longer than it keeps a grant.
constexpr Duration kWatched = std::chrono::seconds(90);

bool has_quota(const hr_record& record) {
  constexpr std::uint32_t kNeeded = HR_CPU_LIMITS | HR_THROTTLE | HR_CPU;
  return (record.valid & kNeeded) == kNeeded && record.cpu_quota_us < HR_NO_LIMIT &&
         record.cpu_period_us > 0 && record.populated != 0;
}

double quota_of(const hr_record& record) {
  return static_cast<double>(record.cpu_quota_us) / static_cast<double>(record.cpu_period_us);
}

}  // namespace

// Records come in the order of the tree: a parent is before its children, and what is kept of it
// holds for them.
CpuBurstRequests::Candidates CpuBurstRequests::candidates_of(const Snapshot& snapshot) {
  struct Place {
    std::uint64_t pod = 0;
    bool below_quota = false;
  };
  std::unordered_map<std::uint64_t, Place> places;
  for (const PodReading& pod : snapshot.pods)
    places.emplace(pod.cgroup.value, Place{.pod = pod.cgroup.value});
  Candidates candidates;
  for (const hr_record& record : *snapshot.cgroups) {
    auto place = places.find(record.id);
    if (place == places.end()) {
      const auto parent = places.find(record.parent_id);
      if (parent == places.end()) continue;
      const Place below = parent->second;
      place = places.emplace(record.id, below).first;
    }
    if (!has_quota(record)) continue;
    Candidate& candidate = candidates[place->second.pod];
    candidate.pod.id = CgroupId{place->second.pod};
    const bool outermost = !std::exchange(place->second.below_quota, true);
    candidate.quotas.push_back({.record = &record, .outermost = outermost});
    if (outermost) candidate.pod.quota += quota_of(record);
  }
  return candidates;
}

void CpuBurstRequests::add_growth(const Candidate::Quota& quota, CpuBurstRequest::Pod& pod) {
  const hr_record& record = *quota.record;
  const Totals now{.throttled = record.nr_throttled,
                   .bursts = record.nr_bursts == HR_UNKNOWN ? 0 : record.nr_bursts,
                   .used_ns = record.cpu_usage_ns};
  next_totals_.emplace(record.id, now);
  const auto before = totals_.find(record.id);
  if (before == totals_.end()) return;
  pod.throttled = pod.throttled || now.throttled > before->second.throttled;
  pod.bursting = pod.bursting || now.bursts > before->second.bursts;
  if (quota.outermost && elapsed_ns_ > 0 && now.used_ns >= before->second.used_ns)
    pod.used = pod.used.value_or(0) +
               static_cast<double>(now.used_ns - before->second.used_ns) / elapsed_ns_;
}

CpuBurstRequest CpuBurstRequests::next(const judge_limits::BurstPolicy& policy,
                                       const Snapshot& snapshot, const report::CgroupNames& names) {
  CpuBurstRequest request{.policy = policy, .pods = {}};
  if (!policy.budget || !snapshot.cgroups) return request;
  elapsed_ns_ = last_ ? static_cast<double>((snapshot.at - *last_).count()) : 0;
  last_ = snapshot.at;
  Candidates candidates = candidates_of(snapshot);
  for (auto& [id, candidate] : candidates) {
    for (const Candidate::Quota& quota : candidate.quotas)
      add_growth(quota, candidate.pod);
    if (candidate.pod.throttled || candidate.pod.bursting) throttled_at_[id] = snapshot.at;
    const auto throttled = throttled_at_.find(id);
    if (throttled == throttled_at_.end() || snapshot.at - throttled->second > kWatched) continue;
    for (const Candidate::Quota& quota : candidate.quotas)
      if (const auto path = names.path_of(CgroupId{quota.record->id}); !path.empty())
        candidate.pod.quotas.push_back({.id = CgroupId{quota.record->id},
                                        .path = std::string(path),
                                        .quota_us = quota.record->cpu_quota_us});
    request.pods.push_back(std::move(candidate.pod));
  }
  totals_ = std::exchange(next_totals_, {});
  std::erase_if(throttled_at_, [&](const auto& each) { return !candidates.contains(each.first); });
  std::sort(request.pods.begin(), request.pods.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
  return request;
}

}  // namespace headroom::daemon
