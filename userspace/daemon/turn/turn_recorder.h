// SPDX-License-Identifier: Apache-2.0
// Recorder: while somebody asks for it, passes on to him every turn as a recording.
//
// It is told of each turn after everybody else. It encodes into memory and no more; a thread of its
// own writes to the pipe it was given. A turn that finds no room is lost and counted, and the next
// that does begins with policy and history anew.
#pragma once

#include "base/fd.h"
#include "recording/tape.h"

#include <headroom/policy.h>
#include <headroom/ports.h>
#include <headroom/result.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace headroom::daemon {

// One recording under way: the loop puts in, a thread takes out.
class RecordingStream {
 public:
  static constexpr std::size_t kCapacity = std::size_t{4} << 20;
  // A reader who takes nothing for so long has given up.
  static constexpr std::chrono::seconds kStallLimit{10};

  RecordingStream(Fd pipe, std::chrono::seconds length, std::int64_t wall_offset);
  ~RecordingStream();
  RecordingStream(const RecordingStream&) = delete;
  RecordingStream& operator=(const RecordingStream&) = delete;

  // The loop's thread. False: it is over.
  bool write_turn(const Policy& policy, const Snapshot& snapshot, const Verdict& verdict,
                  std::span<const Outcome> outcomes);
  void change(const Policy& policy);
  // Nothing more is put in.
  void close();

  std::uint64_t lost() const { return lost_; }
  // Everything is written, or nobody reads.
  bool done() const { return done_; }

 private:
  bool push();
  void write_baseline(const Policy& policy, const Snapshot& snapshot, const Verdict& verdict);
  void run();
  bool write_all(const std::string& bytes);

  Fd pipe_;  // closed by the writer, so that the reader sees the end
  const Duration length_;
  const std::int64_t wall_offset_;
  // The loop's.
  recording::TapeWriter tape_;
  std::string frame_;
  std::optional<Instant> until_;
  Instant last_;               // turn
  bool has_baseline_ = false;  // the reader knows policy and history
  std::uint64_t lost_since_ = 0;
  std::atomic<std::uint64_t> lost_{0};
  // Shared.
  std::mutex mutex_;
  std::condition_variable data_ready_;
  std::string buffer_;
  bool closed_ = false;  // nothing more is put in
  std::atomic<bool> stop_{false};
  std::atomic<bool> done_{false};
  std::thread writer_;
};

class TurnRecorder final : public Reporter {
 public:
  static constexpr std::chrono::seconds kMaxDuration = std::chrono::hours(24);

  TurnRecorder(Reporter& next, Policy policy) : next_(&next), policy_(std::move(policy)) {}

  // Any thread. JSON that says what will be; an error: what was asked cannot be had.
  Result<std::string> start(Fd pipe, std::chrono::seconds length);

  // The loop's thread.
  void reconfigure(const Policy& policy);
  void report_turn(const Snapshot& snapshot, const Verdict& verdict,
                   std::span<const Outcome> outcomes) override;
  // Turns that are in no recording, of all recordings.
  std::uint64_t lost() const { return lost_; }

 private:
  std::shared_ptr<RecordingStream> stream();
  void finish(const std::shared_ptr<RecordingStream>& finished);

  Reporter* next_;
  Policy policy_;
  std::uint64_t lost_ = 0;
  std::atomic<bool> active_{false};
  std::mutex mutex_;
  std::shared_ptr<RecordingStream> stream_;
};

}  // namespace headroom::daemon
