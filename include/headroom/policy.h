// SPDX-License-Identifier: Apache-2.0
// Policy: what the operator asked for, checked and ready to be judged by.
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

// A share of capacity. Kept in float32 because the kubelet does: 10 % of 100 GiB is 10737418400.
struct Fraction {
  float of_one = 0;
  friend bool operator==(Fraction, Fraction) = default;
};
using ThresholdValue = std::variant<Quantity, Fraction>;

// "signal < value, for at least grace". Operator: less-than is the only one there is.
struct Threshold {
  Signal signal = Signal::kMemoryAvailable;
  ThresholdValue value;
  Duration grace{0};                          // zero: hard; more: soft
  std::optional<ThresholdValue> min_reclaim;  // evictionMinimumReclaim

  bool hard() const { return grace == Duration::zero(); }
  friend bool operator==(const Threshold&, const Threshold&) = default;
};

enum class Mode : std::uint8_t {
  kObserve,  // report what would be done
  kEnforce,  // do it
};

struct Policy {
  std::vector<Threshold> thresholds;
  Duration pressure_transition = std::chrono::minutes(5);  // evictionPressureTransitionPeriod
  // evictionMaxPodGracePeriod. Soft evictions grant min(this, the pod's own). Negative: the pod's
  // own. Zero: as hard.
  std::chrono::seconds max_pod_grace{0};
  Mode mode = Mode::kObserve;

  // A hard eviction sends SIGKILL at once. The kubelet grants one second; `headroom.hardGrace: 1s`
  // does the same.
  Duration hard_grace{0};

  // The operator's taints: registerWithTaints, and what was added and removed since. Shared, so
  // that a Reason holds one without allocating. None is null.
  std::vector<std::shared_ptr<const Taint>> taints;
  // Local storage limits are enforced (localStorageCapacityIsolation).
  bool local_storage_isolation = true;
  // A static pod that is over its request and first of the ranking may be evicted after all
  // (headroom.evictStaticPods: culprit). One of system-critical priority never.
  bool evict_static_culprits = false;
  // What there is to free before a pod must go (headroom.reclaim).
  bool can_reclaim_containers = false;
  bool can_reclaim_images = false;
  Duration reclaim_timeout = std::chrono::minutes(2);
  // A pod evicted for a disk signal leaves no emptyDir behind, as under the kubelet.
  bool remove_empty_dirs = true;

  // What a kill for memory takes from a pod that has no setting of its own (headroom.evictionUnit).
  EvictionUnit eviction_unit = EvictionUnit::kPod;
  LadderPolicy ladder;

  // On a node with swap, memory.available is what headroom/swap_room.h says; false: as the kubelet
  // computes it (headroom.swapAware).
  bool swap_aware = true;

  // The window memory.pressure is taken over.
  Duration pressure_window = std::chrono::seconds(1);

  // The watch: how fast this machine could fill memory at worst, in bytes per second, and the
  // bounds of the time between two looks at a signal.
  std::int64_t fastest_fill = std::int64_t{8} << 30;
  Duration check_floor = std::chrono::milliseconds(2);
  Duration check_ceiling = std::chrono::seconds(1);
  // How often every cgroup is read when nothing is near.
  Duration sweep_period = std::chrono::seconds(1);
  friend bool operator==(const Policy&, const Policy&) = default;
};

}  // namespace headroom
