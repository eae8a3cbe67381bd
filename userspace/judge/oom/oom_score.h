// SPDX-License-Identifier: Apache-2.0
// oom_score_adj: which processes the kernel's OOM killer should spare (kubelet: qos/policy.go),
// and the ranking mirrored in it.
#pragma once

#include <headroom/decision.h>
#include <headroom/pod.h>
#include <headroom/snapshot.h>
#include <headroom/units.h>

#include <span>
#include <vector>

namespace headroom::judge_eviction {

// OomMirror: the ranking expressed in oom_score_adj, so that the kernel, if it must kill, makes the
// same choice.
//
// The kernel adds oom_score_adj thousandths of the memory in question to what a process holds, and
// kills the highest sum. So the pod that is evicted first gets the highest value of its band, and
// each next pod a quarter of the previous one's distance to the lowest value: the first is far
// ahead of all others, and the order of the last ones costs no writes.

// What the processes of a pod should have, from 3 to 1000.
struct OomScore {
  CgroupId cgroup;  // the pod's
  int value = 0;
  friend bool operator==(const OomScore&, const OomScore&) = default;
};

// Below this no BestEffort pod goes: well ahead of whatever is in no pod.
inline constexpr int kMinMirroredScore = 500;

// Of every pod that may get a value, in the snapshot's order. `first` lists the pods that would be
// killed for memory, in that order. Bands follow from the formula (kubelet: qos/policy.go):
// Burstable pods stay within the values that the formula gives the present ones, BestEffort pods
// are above all of these. Left alone: Guaranteed and critical pods, and pods known only from the
// cgroup tree. `memory_capacity`: the machine's, above zero.
std::vector<OomScore> mirrored_oom_scores(const Snapshot& snapshot, std::span<const Decision> first,
                                          Bytes memory_capacity);

}  // namespace headroom::judge_eviction

namespace headroom {

inline constexpr int kGuaranteedOomScore = -997;
inline constexpr int kBestEffortOomScore = 1000;
inline constexpr int kSandboxOomScore = -998;  // set by the runtime, by convention

// Of one of the pod's containers, set when it is created and kept. `memory_capacity` is the
// machine's memory, above zero; allocatable does not count.
int oom_score_adj(const Pod& pod, const Container& container, Bytes memory_capacity);

}  // namespace headroom
