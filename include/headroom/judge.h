// SPDX-License-Identifier: Apache-2.0
// judge(): takes policy, snapshot and history; returns decisions and the next history. A pure
// function: the time is Snapshot::at, and unknown readings and the history are values. The same
// code runs in the daemon, in table tests, in replay and in shadow mode, with the same result.
#pragma once

#include <headroom/decision.h>
#include <headroom/ladder_types.h>
#include <headroom/policy.h>
#include <headroom/signal.h>
#include <headroom/snapshot.h>
#include <headroom/swap_room.h>
#include <headroom/units.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace headroom {

// The history of one threshold; in the order of Policy::thresholds.
struct ThresholdHistory {
  std::optional<Instant>
      first_observed;  // since when the signal is below; reset by the first sample above
  bool met = false;    // was past its grace in the last round (kubelet: eviction)
  Instant last_clear;  // newest sample above the threshold; zero: none so far
};

// A pod that is being evicted.
struct Victim {
  enum class Phase : std::uint8_t {  // stored in a file: add new values at the end
    kTerminating,                    // SIGTERM was sent; SIGKILL is due at `deadline`
    kKilled,                         // SIGKILL was sent; its memory is awaited until `deadline`,
                                     // which is extended while it makes progress
    kTimedOut,  // killed, the deadline has passed, and it still runs: chosen again from
                // `sigterm_due`
                // on
    kDryRun,    // observe mode: it would have been evicted; kept until the signal recovers
    kPreStop,  // its pre-stop commands run; SIGTERM follows at `sigterm_due`, SIGKILL at `deadline`
    kRemoving,  // ended; its emptyDirs are removed, its tasks reaped, or its memory awaited, until
                // `sigterm_due`
  };
  std::shared_ptr<const Pod> pod;
  CgroupId cgroup;
  Reason reason;
  Phase phase = Phase::kKilled;
  Instant terminated_at;  // zero: no SIGTERM was sent
  Instant killed_at;      // zero: not yet
  Instant deadline;  // of the phase: when SIGKILL is due, or when to stop waiting for its memory
  Instant sigterm_due{};  // kPreStop: SIGTERM at the latest; killed: when it may be killed again
  Instant gone_at{};      // kRemoving: when its last process exited
  std::optional<Bytes> held;  // working set when it was chosen
  // What the victim has not released yet, in the signal's unit, at the sweep before the latest and
  // at the latest: the node's reading may be a little older than the pods' readings of the same
  // sweep. Absent: unknown.
  std::optional<std::int64_t> due_before{};
  std::optional<std::int64_t> due{};
  Bytes memory_request{};
  // Killed: the lowest memory and swap usage of its cgroup since, and its CPU time when it last
  // made progress in exiting.
  std::optional<Bytes> left{};
  Duration ran{};
  Part part{};  // the part of the pod that is evicted
  // Killed: of its cgroup, at the latest reading. They are freed later than the rest (x86 since
  // 6.14: after an RCU grace period, tlb_remove_table()).
  Bytes page_tables{};
};

// A pod of which a part was killed. If the threshold stays crossed, the rest of the pod is evicted.
struct PartialEviction {
  CgroupId pod;
  Instant killed_at;
};

// Node-level reclaim for one signal, from its decision until its result is used.
struct Reclaim {
  Instant begun;  // zero: none
  Instant ended;  // zero: still running
  Instant deadline;
};

// The rate at which a signal's `available` changes: an exponentially weighted slope.
struct Trend {
  std::optional<Observation> last;
  double per_second = 0;  // of `available`; negative: filling
};

// Until when a pod tolerates the node's NoExecute taints. Kept while the pod runs, also after it
// has expired; otherwise a pod whose eviction failed would get a new timer.
struct TaintTimer {
  CgroupId cgroup;
  Instant started;
  Duration length{0};

  Instant due() const { return started + length; }
};

struct History {
  std::vector<ThresholdHistory> thresholds;
  std::array<std::optional<Instant>, kConditions> last_pressure{};
  std::array<std::optional<Instant>, kSignals> last_sample{};  // so that no sample is judged twice
  std::array<Trend, kSignals> trends{};
  std::vector<Victim> victims;
  std::vector<TaintTimer> taint_timers;
  Instant taints_checked_at;  // when the tolerations of every pod were last checked
  std::array<Reclaim, kSignals> reclaims{};
  // Disk samples up to this time are not acted on: they do not include what was freed last.
  Instant disk_settles_at;
  std::vector<PartialEviction> partial_evictions;
  LadderHistory ladder;
  SwapHistory swap;
  std::optional<Instant> cpu_evicted_at{};  // the last decision to evict for cpu.pressure
};

// The state of a threshold, for the live view, the metrics and the forecast.
struct ThresholdReading {
  std::uint32_t index = 0;            // into Policy::thresholds
  std::optional<std::int64_t> limit;  // resolved against capacity
  std::optional<std::int64_t> available;
  std::optional<Instant> below_since;  // absent: the signal is above, or unknown
  bool met = false;                    // the signal was below for at least the grace
  std::optional<Duration>
      time_to;  // forecast by the current trend; absent: the signal is not falling
};

// One line of the ranking; the first is evicted first.
struct Candidate {
  enum class Selection : std::uint8_t {
    kChosen,
    kOutranked,           // the evictions of others are sufficient
    kCritical,            // static, mirror or critical priority: never evicted
    kAlreadyTerminating,  // it is being evicted already
    kEmpty,               // it has no process: nothing to kill
    kUnknown,             // no reading: not chosen while a pod with a reading can be
    kNothingToFree,  // a kill would release almost nothing: page cache stays after the pod's end;
                     // or its use of CPUs does not explain that others wait
  };
  std::uint32_t pod = 0;  // index into Snapshot::pods
  // In the signal's unit: bytes, inodes or tasks; thousandths of a CPU. `usage` absent: no stats.
  std::optional<std::int64_t> usage;
  std::int64_t request = 0;  // compared with usage
  std::int64_t credit = 0;   // subtracted from usage if both exceed the threshold's value
  std::int32_t priority = 0;
  Selection selection = Selection::kOutranked;
  std::optional<std::int64_t> predicted{};  // what its kill should release
  PodDescription description = PodDescription::kComplete;
};

struct Verdict {
  // The snapshot had the node's readings only, and that is not enough: sweep, and judge again from
  // the same history. The rest of the verdict must not be used then.
  bool needs_cgroups = false;
  Instant next_check;
  // The next check if the memory guard watches memory.available until then and can wake the loop.
  Instant next_check_guarded;
  std::vector<Decision> decisions;
  std::vector<EvictionEnd> eviction_ends;
  std::vector<Candidate> ranking;  // empty unless a threshold was acted on
  std::vector<ThresholdReading> thresholds;
  std::array<bool, kConditions> conditions{};
  std::optional<SwapRoom> swap_room;  // absent: no swap, or unknown
  bool measure_disks = false;  // the pods' disk usage is needed sooner than its period gives it
  History after;
};

// Writes into `verdict` so that its buffers are reused: once they have grown, judging allocates
// nothing.
void judge(const Policy& policy, const Snapshot& snapshot, const History& before, Verdict& verdict);

// Applies an outcome to the history: a failed act did not happen, a victim that has ended is
// removed.
void record_outcome(const Outcome& outcome, History& history);

// The history after a change of policy: thresholds with the same signal, value and grace keep their
// timers; victims are kept.
History carry_over(const Policy& from, const History& history, const Policy& to);

}  // namespace headroom
