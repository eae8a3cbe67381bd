// SPDX-License-Identifier: Apache-2.0
// FlightRecorder: the node's readings of the last minute, in preallocated rings, and copies of the
// rings for evictions.
//
// There are three rings: one reading per second for the last minute; one for each of the latest
// turns, which can be milliseconds apart; and the largest pods, once per second.
#pragma once

#include "report/eviction/audit_line.h"
#include "report/view/node_view.h"

#include <headroom/judge.h>
#include <headroom/result.h>
#include <headroom/snapshot.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace headroom::report {

// The latest kCapacity values, oldest first; a new value replaces the oldest.
template <class T, std::size_t kCapacity>
class Ring {
 public:
  // Advances to the slot of the next value, which still holds an older one: overwrite all of it.
  T& next_slot() {
    newest_ = (newest_ + 1) % kCapacity;
    if (size_ < kCapacity) ++size_;
    return values_[newest_];
  }
  std::size_t size() const { return size_; }
  const T& newest() const { return values_[newest_]; }
  const T& operator[](std::size_t i) const {
    return values_[(newest_ + kCapacity - size_ + 1 + i) % kCapacity];
  }

 private:
  std::array<T, kCapacity> values_{};
  std::size_t newest_ = kCapacity - 1;
  std::size_t size_ = 0;
};

// The signals at one instant, and the state of the thresholds: bit i is the i-th threshold.
struct SignalSample {
  Instant at;
  std::array<std::optional<std::int64_t>, kSignals> available{};
  std::uint64_t below = 0;
  std::uint64_t met = 0;
};

struct PodMemorySample {
  std::shared_ptr<const Pod> pod;
  Bytes working_set;
  std::uint64_t stalled_ns = HR_UNKNOWN;  // memory pressure, "some"; since the cgroup was created
};

// The pods that used most memory, largest first.
struct TopPodsSample {
  static constexpr std::size_t kMax = 8;
  Instant at;
  std::array<PodMemorySample, kMax> pods{};
  std::size_t count = 0;
};

struct FlightRecording {
  static constexpr std::size_t kSeconds = 60;
  static constexpr std::size_t kTurns = 128;
  static constexpr Duration kStep = std::chrono::seconds(1);

  Instant at;  // when the copy was made
  std::vector<ThresholdView> thresholds;
  Ring<SignalSample, kSeconds> seconds;
  Ring<SignalSample, kTurns> turns;
  Ring<TopPodsSample, kSeconds> pods;
};

class FlightRecorder {
 public:
  static constexpr std::size_t kMaxHeld = 3;  // copies held by evictions not yet written
  // An eviction this soon after another shares its flight recording.
  static constexpr Duration kShareWindow = std::chrono::seconds(1);

  FlightRecorder();

  // Adds the readings of one turn. Allocates nothing.
  void record(const Snapshot& snapshot, const Verdict& verdict);
  // A copy of the last minute. Null, and counted as lost, if all copies are held.
  std::shared_ptr<const FlightRecording> capture(const Policy& policy, const Verdict& verdict,
                                                 Instant at);

  std::uint64_t lost() const { return lost_; }

 private:
  // The copies. The pool outlives the recorder while a copy is held. Any thread may release a copy.
  struct Pool {
    std::mutex mutex;
    std::array<FlightRecording, kMaxHeld> recordings;
    std::array<bool, kMaxHeld> held{};
  };
  FlightRecording* take();

  std::unique_ptr<FlightRecording> live_;
  std::shared_ptr<Pool> pool_;
  std::weak_ptr<const FlightRecording> latest_;
  std::uint64_t lost_ = 0;
};

// A flight recording as JSON.

// Times are in milliseconds relative to the time of the copy: zero or negative.
std::string flight_recording_json(const FlightRecording& flight_recording, WallTime captured_at);

// The directory of the recordings, in the directory of the audit log.
inline constexpr const char* kFlightRecordingsDirectory = "minutes";
// The number of files that are kept: the newest.
inline constexpr std::size_t kMaxFlightRecordings = 64;

// Writes the flight recording of one eviction and removes the oldest files beyond the limit.
// Returns the file's name for the audit record, relative to the log's directory. The name consists
// of the time and the pod's uid.
Result<std::string> write_flight_recording(const std::filesystem::path& audit_log,
                                           const FlightRecording& flight_recording, const Pod& pod,
                                           WallTime captured_at);

}  // namespace headroom::report
