// SPDX-License-Identifier: Apache-2.0
// Ladder: what is tried before a pod must go: take page cache, hold best-effort at what it uses,
// raise the limit of a container that waits at its own. Its steps are taken where nothing else is
// to be done at that turn, so none delays a kill.
//
// Page cache on the inactive list is available already, as the kubelet counts; what helps is the
// rest, which memory.reclaim ages on its way. So both lists count.
#pragma once

#include "judge/eviction/threshold/threshold.h"

#include <headroom/judge.h>

#include <memory>
#include <optional>

namespace headroom::judge_eviction {

// LadderPass: what the steps of the ladder share in one judgement.

// While no pod can be reclaimed from, and between two attempts to restore a limit.
constexpr Duration kLadderPause = std::chrono::seconds(5);
// The limits that the ladder sets are multiples of the largest page of amd64 and arm64, where pages
// are of 4, 16 or 64 KiB: so the kernel, which rounds down to its own page, changes none of them.
inline constexpr std::int64_t kLargestPage = 65536;
inline Bytes round_down_to_page(std::int64_t bytes) {
  return Bytes{bytes / kLargestPage * kLargestPage};
}
inline Bytes round_up_to_page(std::int64_t bytes) {
  return round_down_to_page(bytes + kLargestPage - 1);
}

// Absent: no limit is set.
std::optional<Bytes> limit_in(hr_u64 value);

struct MemoryMargin {
  const ThresholdReading* threshold = nullptr;
  const Observation* seen = nullptr;
  bool hard = true;

  std::int64_t level(float margin) const {
    return *threshold->limit + resolve(Fraction{margin}, seen->capacity);
  }
  bool below(std::optional<float> margin) const {
    return margin && seen->available < level(*margin);
  }
};

// The threshold of memory.available the margins are above: the hard one where there is one.
std::optional<MemoryMargin> find_memory_margin(const Policy& policy, const Snapshot& snapshot,
                                               const Verdict& verdict);

struct LadderPass {
  LadderPass(const Policy& policy, const Snapshot& snapshot, Verdict& verdict);

  // Null if no pod has this cgroup.
  const PodReading* pod(CgroupId cgroup) const;
  // The ladder may act on these pods: not exempt, not already being evicted.
  bool may_act_on(const PodReading& reading) const;
  // A decision of the ladder; `bytes`: its amount.
  Decision step(Act act, const std::shared_ptr<const Pod>& target, CgroupId cgroup,
                std::optional<Bytes> bytes) const;
  // Its limits are lifted for the kill, and restored after it.
  bool is_being_killed(CgroupId cgroup) const;
  // By another container of the same pod that is stuck too.
  bool is_already_evicted(CgroupId cgroup) const;

  const Policy& policy;
  const Snapshot& snapshot;
  const Instant at;
  Verdict& verdict;
  LadderHistory& ladder;
  const std::optional<MemoryMargin> memory;
};

// Appends the steps due at this sweep to verdict.decisions, and updates in verdict.after which pods
// it watches. With `busy`, something more urgent is done in this turn, so no step starts.
void run_ladder(const Policy& policy, const Snapshot& snapshot, bool busy, Verdict& verdict);

// The node alone was looked at, and a step may be due: a pass is wanted.
bool is_ladder_step_due(const Policy& policy, const Snapshot& snapshot, const Verdict& verdict);

// How long the ladder may go unwatched; absent: no bound of its own.
std::optional<Duration> time_to_ladder_step(const Policy& policy, const Snapshot& snapshot,
                                            const Verdict& verdict);

void record_ladder_outcome(const Outcome& outcome, LadderHistory& ladder);

}  // namespace headroom::judge_eviction
