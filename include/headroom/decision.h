// SPDX-License-Identifier: Apache-2.0
// Decision: an action with its Reason. The log line, the metric's labels, the audit record and the
// tests all use this one value. Copying one allocates nothing.
#pragma once

#include <headroom/eviction_unit.h>
#include <headroom/pod.h>
#include <headroom/policy.h>
#include <headroom/signal.h>
#include <headroom/taint.h>
#include <headroom/units.h>

#include <cstdint>
#include <memory>
#include <optional>

namespace headroom {

// What caused an eviction.
enum class Cause : std::uint8_t {
  kThreshold,  // a signal below its threshold, or a limit: the readings of Reason
  kTaint,      // a NoExecute taint that the pod does not tolerate (any longer): Reason::taint
  // A container is stuck at its own memory.high: `threshold` is that limit, `used` its usage,
  // `first_crossed` when the waiting began; no signal is below its threshold.
  kStuck,
};

// A limit on local storage that a pod exceeded (kubelet: eviction).
enum class StorageLimit : std::uint8_t { kNone, kEmptyDir, kPod, kContainer };

// Why something was decided: the threshold that was met and the reading; or a limit, its value and
// the usage; or the taint.
struct Reason {
  Cause cause = Cause::kThreshold;
  Signal signal = Signal::kMemoryAvailable;
  bool hard = true;
  std::int64_t threshold = 0;  // the value, resolved against capacity
  std::int64_t available = 0;
  std::int64_t capacity = 0;
  Instant sampled_at;     // when `available` was read
  Instant first_crossed;  // when the signal was first seen below the threshold
  Instant
      last_clear;  // newest earlier sample above the threshold: the crossing lies between the two
  std::shared_ptr<const Taint> taint{};  // kTaint: never null
  // If not kNone: `threshold` is the limit and `used` the usage; no signal is below its threshold.
  StorageLimit limit = StorageLimit::kNone;
  // Index into the pod's volumes (kEmptyDir) or, for kContainer, into its regular containers
  // followed by its init containers: limited_container().
  std::uint32_t subject = 0;
  std::int64_t used = 0;
};

// The container with the index `reason.subject`; null: the pod has no such container.
inline const Container* limited_container(const Pod& pod, const Reason& reason) {
  const std::size_t regular = pod.containers.size();
  if (reason.subject < regular) return &pod.containers[reason.subject];
  const std::size_t init = reason.subject - regular;
  return init < pod.init_containers.size() ? &pod.init_containers[init] : nullptr;
}

// The causes by which evictions for a threshold or a limit are counted: the signals, then the
// limits, by the kubelet's names.
inline constexpr std::size_t kCauses = kSignals + 3;
constexpr std::size_t cause_of(const Reason& reason) {
  if (reason.limit == StorageLimit::kNone) return static_cast<std::size_t>(reason.signal);
  return kSignals + static_cast<std::size_t>(reason.limit) - 1;
}
constexpr std::string_view cause_name(std::size_t cause) {
  constexpr std::string_view kLimits[] = {"emptydirfs.limit", "ephemeralpodfs.limit",
                                          "ephemeralcontainerfs.limit"};
  return cause < kSignals ? kSignalNames[cause] : kLimits[cause - kSignals];
}

// The name by which evictions are counted and filtered: the signal's, the limit's, "taint" or
// "memory.high".
constexpr std::string_view cause_name(const Reason& reason) {
  switch (reason.cause) {
    case Cause::kThreshold:
      return cause_name(cause_of(reason));
    case Cause::kTaint:
      return "taint";
    case Cause::kStuck:
      return "memory.high";
  }
  return "";
}

enum class Act : std::uint8_t {
  kTerminate,  // SIGTERM to every process of the cgroup; kKill follows at `deadline`
  kKill,       // cgroup.kill; of a single process SIGKILL
  // The following run asynchronously: the first outcome is kStarted, a later one reports the end.
  kPreStop,  // the containers' pre-stop commands; kTerminate follows
  kRemove,   // removes the emptyDirs of a pod that has ended
  kReclaim,  // node-level: removes dead containers and unused images; for no pod
  // The steps of the ladder (headroom/ladder_types.h). They evict no pod, and run asynchronously as
  // well.
  kReclaimCache,       // memory.reclaim of a pod: `bytes` of its page cache
  kLowerMemoryHigh,    // memory.high of a BestEffort pod := `bytes`
  kRaiseMemoryHigh,    // memory.high of `part` := `bytes`, more than it was
  kRestoreMemoryHigh,  // memory.high := `bytes`, what it was before; absent: no limit
};
constexpr bool is_ladder(Act act) {
  return act == Act::kReclaimCache || act == Act::kLowerMemoryHigh ||
         act == Act::kRaiseMemoryHigh || act == Act::kRestoreMemoryHigh;
}

// The pod's place in the ranking when it was chosen.
struct RankInfo {
  std::uint32_t rank = 0;  // 0: first of the ranking
  std::uint32_t candidates = 0;
  std::optional<Bytes> working_set;
  Bytes memory_request;
  // In the signal's unit: bytes, inodes or tasks; for cpu.pressure thousandths of a CPU.
  std::optional<std::int64_t> usage;
  std::int64_t request = 0;
  // How much of the signal's resource the kill is predicted to release, and how long after the
  // kill; of cpu.pressure in millionths of the time. Absent: there is no prediction for this
  // signal, or a reading is missing.
  std::optional<std::int64_t> predicted{};
  Duration predicted_in{0};
};

// What node-level reclaim removes.
struct ReclaimSteps {
  bool containers = false;  // dead containers; removed first
  bool images = false;      // unused images
  bool any() const { return containers || images; }
  friend bool operator==(ReclaimSteps, ReclaimSteps) = default;
};

struct Decision {
  Act act = Act::kKill;
  std::shared_ptr<const Pod> pod;  // null: kReclaim
  CgroupId cgroup;                 // the pod's
  Reason reason;
  RankInfo rank_info;
  ReclaimSteps steps{};
  Part part{};                   // the part of the pod that is affected
  std::optional<Bytes> bytes{};  // for the steps of the ladder
  Instant decided_at;
  Instant deadline;  // kTerminate: when the kill is due; kKill: when the memory should be free;
                     // the others: when they are stopped
};

// The result of a Decision. The judge is given results, it does not assume them.
struct Outcome {
  enum class Result : std::uint8_t {
    kDone,     // signals sent
    kGone,     // The cgroup was removed or empty; for one process, reported later: it has exited.
    kFailed,   // see `error`
    kDryRun,   // observe mode
    kStarted,  // started; a later outcome reports its end
  };
  Decision decision;
  Result result = Result::kDone;
  // errno of a failed act. For an asynchronous act that ended (kDone): 0, or why it was incomplete:
  // errno, or a command's exit status with kExitStatus set.
  int error = 0;
  static constexpr int kExitStatus = 1 << 16;
  Instant at;  // when the act returned
};

// The end of an eviction: the victim has ended, or its deadline has passed.
struct EvictionEnd {
  std::shared_ptr<const Pod> pod;
  CgroupId cgroup;
  Reason reason;
  Instant terminated_at;  // zero when there was no SIGTERM
  Instant killed_at;
  Instant ended_at;
  bool gone = false;                     // no process left; of a process: it has exited
  std::optional<Bytes> memory_returned;  // working set at the decision minus what is left
  Part part{};
};

}  // namespace headroom
