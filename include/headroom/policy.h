// SPDX-License-Identifier: Apache-2.0
// Policy: the operator's configuration for the judge, validated.
#pragma once

#include <headroom/eviction_unit.h>
#include <headroom/ladder_types.h>
#include <headroom/quantity.h>
#include <headroom/signal.h>
#include <headroom/taint.h>
#include <headroom/units.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

namespace headroom {

// A share of capacity. A float32 as in the kubelet: 10 % of 100 GiB is 10737418400.
struct Fraction {
  float of_one = 0;
  friend bool operator==(Fraction, Fraction) = default;
};
using ThresholdValue = std::variant<Quantity, Fraction>;

// "signal < value, for at least grace". Less-than is the only operator.
struct Threshold {
  Signal signal = Signal::kMemoryAvailable;
  ThresholdValue value;
  Duration grace{0};                          // zero: hard; more: soft
  std::optional<ThresholdValue> min_reclaim;  // evictionMinimumReclaim

  bool hard() const { return grace == Duration::zero(); }
  friend bool operator==(const Threshold&, const Threshold&) = default;
};

enum class Mode : std::uint8_t {
  kObserve,  // report what would be done, and change nothing
  kEnforce,  // act
};

struct Policy {
  std::vector<Threshold> thresholds;
  Duration pressure_transition = std::chrono::minutes(5);  // evictionPressureTransitionPeriod
  // evictionMaxPodGracePeriod. Soft evictions grant the smaller of this and the pod's own grace.
  // Negative: the pod's own. Zero: as for a hard eviction.
  std::chrono::seconds max_pod_grace{0};
  Mode mode = Mode::kObserve;

  // A hard eviction sends SIGKILL at once. The kubelet grants one second; `headroom.hardGrace: 1s`
  // does the same.
  Duration hard_grace{0};

  // The operator's taints: registerWithTaints with the edits since. Shared, so that a Reason refers
  // to one without allocating. No element is null.
  std::vector<std::shared_ptr<const Taint>> taints;
  // Local storage limits are enforced (localStorageCapacityIsolation).
  bool local_storage_isolation = true;
  // A static pod that exceeds its request and is first of the ranking may be evicted
  // (headroom.evictStaticPods: culprit); one of system-critical priority never.
  bool evict_static_culprits = false;
  // What can be removed before a pod is evicted (headroom.reclaim).
  bool can_reclaim_containers = false;
  bool can_reclaim_images = false;
  Duration reclaim_timeout = std::chrono::minutes(2);
  // The emptyDirs of a pod that is evicted for a disk signal are removed, as by the kubelet.
  bool remove_empty_dirs = true;

  // What a kill for memory ends in a pod without a setting of its own (headroom.evictionUnit).
  EvictionUnit eviction_unit = EvictionUnit::kPod;
  LadderPolicy ladder;

  // On a node with swap, memory.available is computed by the rule of headroom/swap_room.h; false:
  // by the kubelet's (headroom.swapAware).
  bool swap_aware = true;

  // At most one pod is evicted for cpu.pressure in this time; absent: none is
  // (headroom.pressure.cpu.evict).
  std::optional<Duration> cpu_eviction_period{};

  // The window over which memory.pressure is measured.
  Duration pressure_window = std::chrono::seconds(1);

  // The highest rate at which this machine can fill memory, in bytes per second, and the bounds of
  // the time between two checks of a signal.
  std::int64_t fastest_fill = std::int64_t{8} << 30;
  Duration check_floor = std::chrono::milliseconds(2);
  Duration check_ceiling = std::chrono::seconds(1);
  // How often every cgroup is read while no threshold is near.
  Duration sweep_period = std::chrono::seconds(1);
  friend bool operator==(const Policy&, const Policy&) = default;
};

}  // namespace headroom
