// SPDX-License-Identifier: Apache-2.0
// OomMirror: the ranking told in oom_score_adj, so that the kernel, if it must kill, agrees.
//
// The kernel adds oom_score_adj thousandths of the memory in question to what a process holds and
// takes the highest sum. So who is evicted first gets the highest value of his band, and each after
// him a quarter of what the one before had above its lowest: who comes first is far ahead of all
// others, and the order of the last costs no writes.
#pragma once

#include <headroom/decision.h>
#include <headroom/snapshot.h>
#include <headroom/units.h>

#include <span>
#include <vector>

namespace headroom::judge_eviction {

// What the processes of a pod should have, from 3 to 1000.
struct OomScore {
  CgroupId cgroup;  // the pod's
  int value = 0;
  friend bool operator==(const OomScore&, const OomScore&) = default;
};

// Below this no BestEffort pod goes: well ahead of whatever is in no pod.
inline constexpr int kMinMirroredScore = 500;

// Of every pod that may be given one, in the snapshot's order. `first` is who would be killed for
// want of memory, in that order. Bands follow from the formula (KUBELET.md 4.2): Burstable pods
// keep within the values it gives to those there are, BestEffort ones above all of these. Left as
// they are: Guaranteed and critical pods, and those of which the cgroup tree alone tells.
// `memory_capacity`: the machine's, above zero.
std::vector<OomScore> mirrored_oom_scores(const Snapshot& snapshot, std::span<const Decision> first,
                                          Bytes memory_capacity);

}  // namespace headroom::judge_eviction
