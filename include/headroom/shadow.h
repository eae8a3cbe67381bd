// SPDX-License-Identifier: Apache-2.0
// shadow(): what the kubelet's loop would have made of the same node, beside what was decided.
//
// A model of the eviction manager (kubelet: eviction): it looks every ten seconds, at the node's
// signal as it is then and at pods' usage sampled at the look before. Pure, like judge(): the state
// is a value. It sees the node as it is, not as it would be without what was evicted here.
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

// The kubelet beside one of our decisions. Of several at one turn the second is held against its
// next look, and so on: it evicts one at a look.
struct KubeletPrediction {
  CgroupId cgroup;                    // of the pod that headroom chose
  Duration lead{0};                   // how much later its look would have come that acts
  Duration samples_age{0};            // of the usage it would have ranked by, now
  std::shared_ptr<const Pod> choice;  // the pod that the kubelet would have chosen; null: none
  bool same = false;                  // it is among those we chose
};

struct ShadowResult {
  bool evicts = false;    // it would have evicted at this turn...
  bool unneeded = false;  // ...while ours was still giving its memory back
  std::vector<KubeletPrediction> predictions;
};

// Overwrites `sight`; allocates only to grow buffers.
void shadow(const Policy& policy, const Snapshot& snapshot, const Verdict& verdict,
            ShadowState& state, ShadowResult& shadow_result);

}  // namespace headroom
