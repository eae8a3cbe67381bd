// SPDX-License-Identifier: Apache-2.0
// StalledPods: for how long a pod that holds no more memory and swap than it requests waited for
// memory, for the node's own causes, while a pod above its request grew. Such a pod is not the
// cause of a shortage, and its waits show one long before all tasks wait at once. While no pod
// above its request grows, it takes what it requested or reads back what it left in swap: the node
// goes on.
//
// Of the time that a pod waited or ran, and of the time that passed, the share that it waited: a
// pod of many busy tasks of which few wait is not stalled, and neither is one that hardly runs.
#pragma once

#include "observe/growing_waiters.h"

#include <headroom/snapshot.h>
#include <headroom/units.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>

namespace headroom::observe {

class StalledPods {
 public:
  // The pod's cgroup that a cgroup is in; absent: in none.
  using PodOf = std::function<std::optional<CgroupId>(CgroupId)>;

  // After a sweep that `waiters` did not leave out. A pod without a description or without its
  // readings is not counted.
  void update(Instant at, const GrowingWaiters& waiters, std::span<const PodReading> pods,
              const PodOf& pod_of);

  // Microseconds since the first update: the sum over all updates of the time that the pod that was
  // stalled for longest was.
  std::uint64_t micros() const { return micros_; }
  Instant at() const { return at_; }

 private:
  bool has_growing_pod(std::span<const PodReading> pods, Duration period);
  // Nanoseconds for which it was stalled in the period; 0 if it does not count.
  double stalled(const PodReading& pod, std::uint64_t waited, Duration period) const;

  using ByPod = std::unordered_map<std::uint64_t, std::uint64_t>;
  ByPod waited_, cpu_, cpu_before_;  // nanoseconds
  ByPod sizes_, sizes_before_;       // bytes, of pods above their requests
  std::uint64_t micros_ = 0;
  Instant at_{};
};

}  // namespace headroom::observe
