// SPDX-License-Identifier: Apache-2.0
// shadow(): what the kubelet's eviction loop would have done on the same node.
//
// A model of the eviction manager (kubelet: eviction): every ten seconds it reads the node's
// signal, and the pods' usage that was sampled ten seconds before. Pure, like judge(): the state is
// a value. Its input is the node after headroom's evictions, not the node as it would be without
// them.
#pragma once

#include <headroom/judge.h>
#include <headroom/policy.h>
#include <headroom/snapshot.h>

#include <memory>
#include <optional>
#include <vector>

namespace headroom {

inline constexpr Duration kKubeletPeriod = std::chrono::seconds(10);

struct ShadowState {
  struct Sample {
    CgroupId cgroup;
    std::optional<std::int64_t> usage;  // working set
  };
  Instant next_kubelet_sync;  // zero: it has not begun
  bool sample = true;         // at the next pass
  Instant sampled_at;
  std::vector<Sample> samples;                         // by cgroup
  std::vector<std::optional<Instant>> first_observed;  // by threshold, at its looks
};

// The kubelet's prediction for one of headroom's decisions. The kubelet evicts one pod every ten
// seconds, so the second decision of a turn is compared with its next pass, and so on.
struct KubeletPrediction {
  CgroupId cgroup;          // of the pod that headroom chose
  Duration lead{0};         // how much later the kubelet's pass would have acted
  Duration samples_age{0};  // current age of the usage that the kubelet would have ranked by
  std::shared_ptr<const Pod> choice;  // the pod that the kubelet would have chosen; null: none
  bool same = false;                  // headroom chose it as well
};

struct ShadowResult {
  bool evicts = false;    // the kubelet would have evicted at this turn...
  bool unneeded = false;  // ...while headroom's victim was still releasing its memory
  std::vector<KubeletPrediction> predictions;
};

// Overwrites `sight`; allocates only to grow buffers.
void shadow(const Policy& policy, const Snapshot& snapshot, const Verdict& verdict,
            ShadowState& state, ShadowResult& shadow_result);

}  // namespace headroom
