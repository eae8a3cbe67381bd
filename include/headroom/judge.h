// SPDX-License-Identifier: Apache-2.0
// judge(): policy, snapshot and history in; decisions and the next history out. A pure function:
// time is Snapshot::at, unknown is a value, history is a value. The same code runs live, in table
// tests, in replay and in shadow mode, and gives the same answer.
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

// What is remembered of one threshold; parallel to Policy::thresholds.
struct ThresholdHistory {
  std::optional<Instant> first_observed;  // below since; forgotten at the first good sample
  bool met = false;    // was past its grace in the last round (kubelet: eviction)
  Instant last_clear;  // newest sample above the threshold; zero: never seen one
};

// A pod on its way out.
struct Victim {
  enum class Phase : std::uint8_t {  // kept in a file: new ones go last
    kTerminating,                    // SIGTERM sent; SIGKILL falls due at `deadline`
    kKilled,                         // SIGKILL sent; its memory is awaited until `deadline`,
                                     // which is put off for as long as it gets on with dying
    kTimedOut,  // killed, its time is up, and it lives: chosen again from `step_due` on
    kDryRun,    // observe mode: it would have been evicted; held until the signal recovers
    kPreStop,   // its pre-stop commands run; SIGTERM follows at `step_due`, SIGKILL at `deadline`
    kRemoving,  // gone; its emptyDirs are removed, or its tasks reaped, until `step_due`
  };
  std::shared_ptr<const Pod> pod;
  CgroupId cgroup;
  Reason reason;
  Phase phase = Phase::kKilled;
  Instant terminated_at;      // zero: no SIGTERM was sent
  Instant killed_at;          // zero: not yet
  Instant deadline;           // of the phase: when to kill; when to stop waiting for its memory
  Instant sigterm_due{};      // kPreStop: SIGTERM at the latest; killed: when it may be again
  Instant gone_at{};          // kRemoving: when the last process had exited
  std::optional<Bytes> held;  // working set when it was chosen
  // What the victim has yet to give back, in the signal's unit, as of the sweep before the latest
  // and of the latest: the node's reading may be a little older than the pods' of the same sweep.
  // Absent: unknown.
  std::optional<std::int64_t> due_before{};
  std::optional<std::int64_t> due{};
  Bytes memory_request{};
  // Killed: the least its cgroup has held of memory and swap since, and its CPU time when it was
  // last seen to get on with dying.
  std::optional<Bytes> left{};
  Duration ran{};
  Part part{};  // what of the pod goes
};

// A pod of which a part was killed. If the same crossing lasts, the rest of it goes.
struct PartialEviction {
  CgroupId pod;
  Instant killed_at;
};

// Node-level reclaim for one signal, from its decision to its use.
struct Reclaim {
  Instant begun;  // zero: none
  Instant ended;  // zero: still running
  Instant deadline;
};

// How fast a signal's `available` is falling: an exponentially weighted slope.
struct Trend {
  std::optional<Observation> last;
  double per_second = 0;  // of `available`; negative: filling
};

// How long a pod tolerates the node's NoExecute taints. Kept while the pod runs, also after it has
// run out; otherwise a pod whose eviction failed would start a new timer.
struct TaintTimer {
  CgroupId cgroup;
  Instant started;
  Duration length{0};

  Instant due() const { return started + length; }
};

struct History {
  std::vector<ThresholdHistory> thresholds;
  std::array<std::optional<Instant>, kConditions> last_pressure{};
  std::array<std::optional<Instant>, kSignals> last_sample{};  // never judge one sample twice
  std::array<Trend, kSignals> trends{};
  std::vector<Victim> victims;
  std::vector<TaintTimer> taint_timers;
  Instant taints_checked_at;  // when every pod was last asked what it makes of the taints
  std::array<Reclaim, kSignals> reclaims{};
  // No disk sample up to here is acted on: what was freed last does not show in it yet.
  Instant disk_settles_at;
  std::vector<PartialEviction> partial_evictions;
  LadderHistory ladder;
  SwapHistory swap;
};

// A threshold as it stands: for the live view, the metrics and the forecast.
struct ThresholdReading {
  std::uint32_t index = 0;            // into Policy::thresholds
  std::optional<std::int64_t> limit;  // resolved against capacity
  std::optional<std::int64_t> available;
  std::optional<Instant> below_since;  // absent: above it, or unknown
  bool met = false;                    // below for at least its grace
  std::optional<Duration> time_to;     // forecast at the present trend; absent: not filling
};

// One line of the ranking, first to die first.
struct Candidate {
  enum class Selection : std::uint8_t {
    kChosen,
    kOutranked,           // others suffice
    kCritical,            // static, mirror or critical priority: never evicted
    kAlreadyTerminating,  // already on its way out
    kEmpty,               // no process left in it: nothing to kill
    kUnknown,             // no reading: not chosen while the threshold can be served by a known one
    kNothingToFree,  // its death would give back next to nothing: page cache outlives its owner
  };
  std::uint32_t pod = 0;  // index into Snapshot::pods
  // Of what the signal counts: bytes, inodes or tasks. `usage` absent: no stats.
  std::optional<std::int64_t> usage;
  std::int64_t request = 0;  // what usage is held against
  std::int64_t credit = 0;   // what is subtracted from it, where both exceed the threshold's
  std::int32_t priority = 0;
  Selection selection = Selection::kOutranked;
  std::optional<std::int64_t> predicted{};  // what its death should give back (Standing)
  PodDescription description = PodDescription::kComplete;
};

struct Verdict {
  // The snapshot held the node alone and that is not enough: sweep, and judge again from the same
  // history. Nothing else in the verdict counts then.
  bool needs_cgroups = false;
  Instant next_check;
  // The same if the memory guard watches memory.available until then and can wake the loop.
  Instant next_check_guarded;
  std::vector<Decision> decisions;
  std::vector<EvictionEnd> eviction_ends;
  std::vector<Candidate> ranking;  // empty unless a threshold was acted on
  std::vector<ThresholdReading> thresholds;
  std::array<bool, kConditions> conditions{};
  std::optional<SwapRoom> swap_room;  // absent: no swap, or unknown
  bool measure_disks = false;         // pods' disk usage is wanted, sooner than at its usual pace
  History after;
};

// Writes into `verdict` so that its buffers are reused: once they have grown, judging allocates
// nothing.
void judge(const Policy& policy, const Snapshot& snapshot, const History& before, Verdict& verdict);

// What an act's outcome teaches: a failed act is not done, a vanished victim is no victim.
void record_outcome(const Outcome& outcome, History& history);

// Takes over what still applies when the policy changes (thresholds equal in signal, value and
// grace keep their clocks; victims stay).
History carry_over(const Policy& from, const History& history, const Policy& to);

}  // namespace headroom
