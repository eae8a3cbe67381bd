// SPDX-License-Identifier: Apache-2.0
// TurnRecorder: writes every turn to a pipe while a recording is requested.
//
// The loop's thread encodes each turn into a buffer; a thread of the recording writes the buffer to
// the pipe. A turn that does not fit into the buffer is lost and counted; the next one that fits
// starts with the whole policy and history again.
#pragma once

#include "base/file_io.h"
#include "daemon/limits/limit_plan_queue.h"
#include "daemon/turn/system_use_reader.h"
#include "recording/tape.h"

#include <headroom/judge.h>
#include <headroom/policy.h>
#include <headroom/result.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace headroom::daemon {

// A bounded buffer, and the thread that writes it to the pipe.
class PipeWriter {
 public:
  static constexpr std::size_t kCapacity = std::size_t{4} << 20;  // bytes
  // The writer ends when its reader takes nothing for this long.
  static constexpr std::chrono::seconds kStallLimit{10};

  explicit PipeWriter(Fd pipe);
  // Drops the bytes that are not yet written.
  ~PipeWriter();
  PipeWriter(const PipeWriter&) = delete;
  PipeWriter& operator=(const PipeWriter&) = delete;

  // Appends all of `bytes`, or nothing (false). Called on one thread; never waits for the pipe.
  bool push(std::string_view bytes);
  // To be called after the last push(): the rest is written, then the pipe is closed.
  void close();
  // Everything is written, or the pipe has no reader.
  bool done() const { return done_; }

 private:
  void run();
  void write_until_closed();
  bool write_all(const std::string& bytes);

  Fd pipe_;  // closed by the thread, so that the reader sees the end
  std::mutex mutex_;
  std::condition_variable data_ready_;
  std::string buffer_;
  bool closed_ = false;
  std::atomic<bool> stop_{false};
  std::atomic<bool> done_{false};
  std::thread writer_;
};

// One recording in progress. Used on the loop's thread, except lost() and done().
class RecordingStream {
 public:
  RecordingStream(Fd pipe, std::chrono::seconds length, std::int64_t wall_offset)
      : length_(length), wall_offset_(wall_offset), writer_(std::move(pipe)) {}

  // Returns false when the recording is over. `system`: of this turn's sweep; null: not read.
  bool write_turn(const Policy& policy, const Snapshot& snapshot, const Verdict& verdict,
                  std::span<const Outcome> outcomes, const recording::SystemUse* system);
  // False: they are not in the recording.
  bool write_limit_plans(const recording::LimitPlans& made);
  void change(const Policy& policy);
  // No more turns follow.
  void close() { writer_.close(); }

  std::uint64_t lost() const { return lost_; }
  bool done() const { return writer_.done(); }

 private:
  void write_baseline(const Policy& policy, const Snapshot& snapshot, const Verdict& verdict);

  const Duration length_;
  const std::int64_t wall_offset_;
  recording::TapeWriter tape_;
  std::string frame_;
  std::optional<Instant> until_;
  Instant last_;               // the latest turn
  bool has_baseline_ = false;  // policy and history are written
  std::uint64_t lost_since_ = 0;
  std::atomic<std::uint64_t> lost_{0};
  PipeWriter writer_;
};

class TurnRecorder {
 public:
  static constexpr std::chrono::seconds kMaxDuration = std::chrono::hours(24);

  // `system` must outlive this; null: the use of system cgroups is not recorded. `limit_plans` is
  // on while a recording is.
  explicit TurnRecorder(
      Policy policy, SystemUseReader* system = nullptr,
      std::shared_ptr<LimitPlanQueue> limit_plans = std::make_shared<LimitPlanQueue>())
      : policy_(std::move(policy)), system_(system), limit_plans_(std::move(limit_plans)) {}

  // On any thread. Returns JSON with the length of the recording, or why it cannot start.
  Result<std::string> start(Fd pipe, std::chrono::seconds length);

  // The following functions are called on the loop's thread.
  void reconfigure(const Policy& policy);
  // To be called after every turn, before its history is committed.
  void record_turn(const Snapshot& snapshot, const Verdict& verdict,
                   std::span<const Outcome> outcomes);
  // Turns and limit plans that were lost, of all recordings.
  std::uint64_t lost() const { return lost_; }

 private:
  std::shared_ptr<RecordingStream> stream();
  void write_limit_plans(RecordingStream& stream, Instant at);
  void finish(const std::shared_ptr<RecordingStream>& finished);

  Policy policy_;
  SystemUseReader* system_;
  const std::shared_ptr<LimitPlanQueue> limit_plans_;
  std::uint64_t lost_ = 0;
  std::atomic<bool> active_{false};
  std::mutex mutex_;
  std::shared_ptr<RecordingStream> stream_;
};

}  // namespace headroom::daemon
