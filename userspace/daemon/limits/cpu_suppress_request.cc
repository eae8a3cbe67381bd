// SPDX-License-Identifier: Apache-2.0
#include "daemon/limits/cpu_suppress_request.h"

#include <algorithm>
#include <utility>

namespace headroom::daemon {
namespace {

using judge_limits::SuppressReading;

// A pod that uses less than this of a CPU takes nothing from others.
constexpr double kRuns = 0.01;

std::unordered_map<std::uint64_t, std::uint64_t> waits_by_pod(const Waits& waits) {
  std::unordered_map<std::uint64_t, std::uint64_t> by_pod;
  if (!waits.cpu) return by_pod;
  for (std::size_t i = 0; i < waits.cpu->ids.size(); ++i) {
    const CpuWaits& pod = waits.cpu->values[i];
    by_pod.emplace(waits.cpu->ids[i], pod[CpuWaitCause::kNode] + pod[CpuWaitCause::kInterrupts]);
  }
  return by_pod;
}

// Per second of the window. A pod that was not there at the last window began with zeros.
std::optional<double> rate(const std::optional<std::uint64_t>& before,
                           const std::optional<std::uint64_t>& now, Duration window) {
  if (!now || !before || *now < *before || window <= Duration::zero()) return std::nullopt;
  return static_cast<double>(*now - *before) / static_cast<double>(window.count());
}

}  // namespace

CpuSuppressRequest CpuSuppressRequests::next(const judge_limits::SuppressPolicy& policy,
                                             const Snapshot& snapshot,
                                             const report::CgroupNames& names,
                                             const std::string& pods_cgroup) {
  CpuSuppressRequest request;
  if (policy != policy_) {
    history_ = {};
    policy_ = policy;
  }
  if (!policy.is_on() || !snapshot.cgroups) return request;
  // Without a reading the waits are unknown, and each sweep counts as a window.
  const auto& pressure = of(snapshot.observations, Signal::kCpuPressure);
  const Instant at = pressure ? pressure->at : snapshot.at;
  if (!policy.always && at != window_at_) end_window(policy, snapshot, at);
  for (const PodReading& pod : snapshot.pods) {
    if (!pod.record || pod.record->populated == 0) continue;
    const auto importance = judge_limits::suppressible(policy, pod);
    if (!importance || !(policy.always || history_.suppresses(*importance))) continue;
    if (const auto path = names.path_of(pod.cgroup); !path.empty())
      request.cgroups.push_back({.id = pod.cgroup, .path = std::string(path)});
  }
  if (!pods_cgroup.empty()) add_tiers(snapshot, names, pods_cgroup, request);
  return request;
}

SuppressReading CpuSuppressRequests::reading_of(const judge_limits::SuppressPolicy& policy,
                                                const PodReading& pod, const Totals& now,
                                                Instant at) const {
  SuppressReading reading{.importance = judge_limits::suppressible(policy, pod)};
  if (!window_at_) return reading;
  const auto known = totals_.find(pod.cgroup.value);
  const Totals before =
      known == totals_.end() ? Totals{.waited_ns = 0, .used_ns = 0} : known->second;
  const Duration window = at - *window_at_;
  if (const auto waited = rate(before.waited_ns, now.waited_ns, window))
    reading.waited = std::min(*waited, 1.0);
  reading.runs = rate(before.used_ns, now.used_ns, window).value_or(0) >= kRuns;
  return reading;
}

void CpuSuppressRequests::end_window(const judge_limits::SuppressPolicy& policy,
                                     const Snapshot& snapshot, Instant at) {
  const auto waits = waits_by_pod(snapshot.waits);
  const bool known = of(snapshot.observations, Signal::kCpuPressure).has_value();
  ByPod totals;
  std::vector<SuppressReading> readings;
  readings.reserve(snapshot.pods.size());
  for (const PodReading& pod : snapshot.pods) {
    Totals& now = totals[pod.cgroup.value];
    if (const auto waited = waits.find(pod.cgroup.value); known && waited != waits.end())
      now.waited_ns = waited->second;
    if (pod.record && (pod.record->valid & HR_CPU)) now.used_ns = pod.record->cpu_usage_ns;
    readings.push_back(reading_of(policy, pod, now, at));
  }
  judge_limits::plan_suppress(policy, at, readings, history_);
  totals_ = std::move(totals);
  window_at_ = at;
}

void CpuSuppressRequests::add_tiers(const Snapshot& snapshot, const report::CgroupNames& names,
                                    const std::string& pods_cgroup, CpuSuppressRequest& request) {
  std::unordered_set<std::uint64_t> suppressed;
  for (const CpuSuppressRequest::Cgroup& pod : request.cgroups)
    suppressed.insert(pod.id.value);
  std::unordered_map<std::uint64_t, bool> tiers;  // whether nothing else runs in it
  for (const hr_record& record : *snapshot.cgroups)
    if (suppressed.contains(record.id)) tiers.emplace(record.parent_id, true);
  for (const hr_record& record : *snapshot.cgroups)
    if (const auto tier = tiers.find(record.parent_id); tier != tiers.end())
      tier->second &= record.populated == 0 || suppressed.contains(record.id);
  const std::string pods = "/" + pods_cgroup + "/";
  for (const auto& [id, alone] : tiers) {
    const auto path = names.path_of(CgroupId{id});
    if (alone && path.starts_with(pods))
      request.cgroups.push_back({.id = CgroupId{id}, .path = std::string(path), .is_pod = false});
  }
}

}  // namespace headroom::daemon
