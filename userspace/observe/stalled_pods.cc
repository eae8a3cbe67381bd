// SPDX-License-Identifier: Apache-2.0
#include "observe/stalled_pods.h"

#include <algorithm>
#include <utility>

namespace headroom::observe {
namespace {

constexpr std::uint32_t kNeeded = HR_MEMORY_USAGE | HR_CPU;

bool is_known(const PodReading& pod) {
  return pod.description == PodDescription::kComplete && pod.record &&
         (pod.record->valid & kNeeded) == kNeeded;
}

bool is_within_request(const PodReading& pod) {
  return memory_and_swap(*pod.record) <= pod.memory_request;
}

}  // namespace

// CPU time is known only of pods that waited in the period before as well: until then it counts as
// that of one CPU.
double StalledPods::stalled(const PodReading& pod, std::uint64_t waited, Duration period) const {
  const auto before = cpu_before_.find(pod.cgroup.value);
  const auto whole = static_cast<double>(period.count());
  const double ran = before == cpu_before_.end()
                         ? whole
                         : static_cast<double>(pod.record->cpu_usage_ns - before->second);
  const auto ns = static_cast<double>(waited);
  return whole * ns / std::max(whole, ns + std::max(ran, 0.0));
}

bool StalledPods::has_growing_pod(std::span<const PodReading> pods, Duration period) {
  std::swap(sizes_, sizes_before_);
  sizes_.clear();
  const double growth = seconds_of(period) * static_cast<double>(GrowingWaiters::kGrowth);
  bool grows = false;
  for (const PodReading& pod : pods) {
    if (!is_known(pod) || is_within_request(pod)) continue;
    const auto size = static_cast<std::uint64_t>(memory_and_swap(*pod.record)->count);
    sizes_.emplace(pod.cgroup.value, size);
    const auto before = sizes_before_.find(pod.cgroup.value);
    grows = grows || (before != sizes_before_.end() &&
                      static_cast<double>(size) > static_cast<double>(before->second) + growth);
  }
  return grows;
}

void StalledPods::update(Instant at, const GrowingWaiters& waiters,
                         std::span<const PodReading> pods, const PodOf& pod_of) {
  at_ = at;
  std::swap(cpu_, cpu_before_);
  cpu_.clear();
  const bool counts = has_growing_pod(pods, waiters.period());
  waited_.clear();
  for (const GrowingWaiters::Wait& wait : waiters.waits())
    if (const auto pod = pod_of(wait.cgroup)) waited_[pod->value] += wait.ns;
  if (waited_.empty()) return;
  double longest = 0;
  for (const PodReading& pod : pods) {
    const auto waited = waited_.find(pod.cgroup.value);
    if (waited == waited_.end() || !is_known(pod) || !is_within_request(pod)) continue;
    longest = std::max(longest, stalled(pod, waited->second, waiters.period()));
    cpu_.emplace(pod.cgroup.value, pod.record->cpu_usage_ns);
  }
  if (counts) micros_ += static_cast<std::uint64_t>(longest / 1e3);
}

}  // namespace headroom::observe
