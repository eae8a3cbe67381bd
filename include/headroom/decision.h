// SPDX-License-Identifier: Apache-2.0
// Decision: something to do, with its Reason. The log line, the metric's labels, the audit record
// and the test's assertion are this one value. Holding one costs no allocation.
#pragma once

#include <headroom/pod.h>
#include <headroom/policy.h>
#include <headroom/signal.h>
#include <headroom/taint.h>
#include <headroom/units.h>

#include <cstdint>
#include <memory>
#include <optional>

namespace headroom {

// What an eviction goes back to.
enum class Cause : std::uint8_t {
  kThreshold,  // a signal below its threshold: the readings of Reason
  kTaint,      // a NoExecute taint not tolerated, or no longer: Reason::taint; no reading counts
};

// Why: the threshold that was acted on and what was read, or the taint.
struct Reason {
  Cause cause = Cause::kThreshold;
  Signal signal = Signal::kMemoryAvailable;
  bool hard = true;
  std::int64_t threshold = 0;  // the value, resolved against capacity
  std::int64_t available = 0;
  std::int64_t capacity = 0;
  Instant sampled_at;     // when `available` was read
  Instant first_crossed;  // when the signal was first seen below the threshold
  Instant last_clear;     // newest sample above it before that: the true crossing lies between
  std::shared_ptr<const Taint> taint{};  // kTaint: never null
};

// What evictions are counted and filtered by: the signal's name, or "taint".
constexpr std::string_view cause_name(const Reason& reason) {
  switch (reason.cause) {
    case Cause::kThreshold:
      return name(reason.signal);
    case Cause::kTaint:
      return "taint";
  }
  return "";
}

enum class Act : std::uint8_t {
  kTerminate,  // SIGTERM to every process of the cgroup; a kKill follows at `deadline`
  kKill,       // cgroup.kill
};

// How the pod stood when it was chosen.
struct Standing {
  std::uint32_t rank = 0;  // 0: first of the ranking
  std::uint32_t candidates = 0;
  std::optional<Bytes> working_set;
  Bytes memory_request;
};

struct Decision {
  Act act = Act::kKill;
  std::shared_ptr<const Pod> pod;
  CgroupId cgroup;
  Reason reason;
  Standing standing;
  Instant decided_at;
  Instant deadline;  // kTerminate: when the kill falls due; kKill: when memory should be back
};

// What came of a Decision. The judge learns outcomes, not intentions.
struct Outcome {
  enum class Result : std::uint8_t {
    kDone,      // signals sent
    kGone,      // the cgroup had vanished, or nobody was left in it
    kFailed,    // see `error`
    kPretended  // observe mode
  };
  Decision decision;
  Result result = Result::kDone;
  int error = 0;  // errno of a failed act
  Instant at;     // when the act returned
};

// The end of an eviction: the victim is gone, or its time is up.
struct Farewell {
  std::shared_ptr<const Pod> pod;
  CgroupId cgroup;
  Reason reason;
  Instant terminated_at;  // zero when there was no SIGTERM
  Instant killed_at;
  Instant ended_at;
  bool gone = false;                     // no process left
  std::optional<Bytes> memory_returned;  // working set at the decision minus what is left
};

}  // namespace headroom
