// SPDX-License-Identifier: Apache-2.0
// Eviction: one eviction from its first Decision to its end. The audit line, the D-Bus signal and
// the log lines are made from this value.
#pragma once

#include "report/view/ladder_steps.h"

#include <headroom/decision.h>
#include <headroom/judge.h>
#include <headroom/shadow.h>
#include <headroom/swap_room.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::report {

enum class Ending : std::uint8_t {
  kOpen,         // under way
  kEvicted,      // no process left
  kTimedOut,     // processes were left at the deadline
  kAlreadyGone,  // the pod had ended before it could be signalled
  kFailed,       // the act failed: see `error`
  kWouldEvict,   // observe mode: nothing was done
};
constexpr std::string_view name(Ending ending) {
  switch (ending) {
    case Ending::kOpen:
      return "open";
    case Ending::kEvicted:
      return "evicted";
    case Ending::kTimedOut:
      return "timed_out";
    case Ending::kAlreadyGone:
      return "already_gone";
    case Ending::kFailed:
      return "failed";
    case Ending::kWouldEvict:
      return "would_evict";
  }
  return "";
}

constexpr std::string_view name(Act act) {
  switch (act) {
    case Act::kTerminate:
      return "terminate";
    case Act::kKill:
      return "kill";
    case Act::kPreStop:
      return "pre-stop";
    case Act::kRemove:
      return "remove";
    case Act::kReclaim:
      return "reclaim";
    case Act::kReclaimCache:
    case Act::kLowerMemoryHigh:
    case Act::kRaiseMemoryHigh:
    case Act::kRestoreMemoryHigh:
      return kLadderStepNames[ladder_step(act)];
  }
  return "";
}

constexpr std::string_view name(Candidate::Selection selection) {
  switch (selection) {
    case Candidate::Selection::kChosen:
      return "chosen";
    case Candidate::Selection::kOutranked:
      return "outranked";
    case Candidate::Selection::kCritical:
      return "critical";
    case Candidate::Selection::kAlreadyTerminating:
      return "terminating";
    case Candidate::Selection::kEmpty:
      return "empty";
    case Candidate::Selection::kUnknown:
      return "unknown";
    case Candidate::Selection::kNothingToFree:
      return "nothing_to_free";
  }
  return "";
}

// A copy of a Candidate, which remains valid after the snapshot is gone.
struct Ranked {
  std::shared_ptr<const Pod> pod;
  std::optional<std::int64_t> usage;  // in the unit of the signal
  std::int64_t request = 0;
  std::int32_t priority = 0;
  Candidate::Selection selection = Candidate::Selection::kOutranked;
  Duration age{0};                          // of the usage, at the ranking
  std::optional<std::int64_t> predicted{};  // what its end should release, in that unit
};

struct FlightRecording;

struct Eviction {
  Decision decision;  // the first decision on the pod
  std::string path;   // of the cgroup; "" when not known
  std::vector<Ranked> ranking;
  std::string message;    // the kubelet's message on the pod
  Instant signalled_at;   // when the first act returned; zero: none did
  Instant terminated_at;  // zero: no SIGTERM
  Instant killed_at;      // zero: no SIGKILL
  Instant ended_at;       // zero: not ended
  Ending ending = Ending::kOpen;
  int error = 0;  // errno of a failed act
  std::optional<Bytes> memory_returned;
  std::uint64_t allocations = 0;             // from the verdict to the first act
  std::optional<KubeletPrediction> kubelet;  // what the kubelet would have done
  // Steps of the ladder begun in the minute before the decision.
  LadderStepCounts ladder{};
  std::optional<SwapRoom> swap_room{};  // at the decision, if it was for the node's memory
  std::shared_ptr<const FlightRecording> flight_recording;  // up to the decision; null: not kept
};

}  // namespace headroom::report
