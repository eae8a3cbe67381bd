// SPDX-License-Identifier: Apache-2.0
// plan_pod_swap(): what is changed about the swap of a pod (headroom.podSwap). A pod over its
// request that holds a large share of the node's swap is slowed down (memory.swap.high), so that
// the node is not; what a protected pod swaps stays in zswap (memory.zswap.writeback). Pure.
#pragma once

#include <headroom/snapshot.h>
#include <headroom/units.h>

#include <cstdint>
#include <optional>

namespace headroom::judge_limits {

struct PodSwapPolicy {
  // Of the node's swap; absent: no pod is slowed down.
  std::optional<float> high{};
  // False: pages that a protected pod swapped are not written from zswap to a device.
  bool zswap_writeback = true;
  // Pods of at least this priority are protected too; absent: see is_protected().
  std::optional<std::int32_t> protected_priority{};

  bool any() const { return high || !zswap_writeback; }
  friend bool operator==(const PodSwapPolicy&, const PodSwapPolicy&) = default;
};

// Guaranteed, static, system-critical, or of the policy's priority and above. Such a pod is never
// slowed down.
bool is_protected(const PodSwapPolicy& policy, const PodReading& pod);

struct PodSwapPlan {
  std::optional<Bytes> high{};  // memory.swap.high; absent: not set
  bool keep_in_zswap = false;   // memory.zswap.writeback is 0
  friend bool operator==(const PodSwapPlan&, const PodSwapPlan&) = default;
};

// `swap_total`: of the node, in bytes; absent: it has none, or unknown. `is_limited`: the pod has a
// memory.swap.high by an earlier plan. It keeps it until it uses an eighth less than its request.
// Nothing is changed for a pod whose description is not known yet.
PodSwapPlan plan_pod_swap(const PodSwapPolicy& policy, const PodReading& pod,
                          std::optional<std::int64_t> swap_total, bool is_limited);

}  // namespace headroom::judge_limits
