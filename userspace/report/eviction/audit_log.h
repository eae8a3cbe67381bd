// SPDX-License-Identifier: Apache-2.0
// AuditLog: the file of evictions, one JSON line each, written on a thread of its own.
//
// Under memory pressure a write() to disk can take seconds, so the loop only passes records to this
// thread, through a queue of fixed size. A line that cannot be written stays in memory and is
// retried; records and lines that do not fit are counted as lost. A line is first appended to a
// file on a tmpfs, from which the next daemon takes what this one did not write.
#pragma once

#include "report/eviction/audit_line.h"
#include "report/eviction/eviction.h"

#include <headroom/result.h>

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace headroom::report {

// Appends `lines` with one write(); creates a missing directory; removes a line that was written
// partially. The file is opened each time: evictions are rare, and log rotation needs no signal
// then.
Result<> append_lines(const std::filesystem::path& file, const std::string& lines);

struct AuditSetup {
  std::filesystem::path file;            // empty: no audit log
  std::filesystem::path unwritten_file;  // lines that are not in `file` yet; empty: not kept
  QosOf qos_of = nullptr;
  std::function<WallTime(Instant)> wall_time = wall_time_of;
  Duration retry_period = std::chrono::seconds(10);
};

class AuditLog {
 public:
  static constexpr std::size_t kQueueSize = 64;      // records submitted, not yet formatted
  static constexpr std::size_t kMaxUnwritten = 256;  // lines formatted, not yet written

  explicit AuditLog(AuditSetup setup);
  // Tries once to write the remaining lines. The rest is counted as lost, unless it is kept for the
  // next daemon.
  ~AuditLog();
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  // Every record that was submitted is in one of the two files, or lost: a daemon that ends now
  // leaves it to the next one.
  bool all_kept() const;

  // Takes the record by exchanging it with an empty one, whose buffers the caller reuses; allocates
  // nothing. Returns false, and counts the record as lost, if the queue is full.
  bool submit(Eviction& eviction);

  struct AuditStats {
    std::uint64_t written = 0;
    std::uint64_t lost = 0;
    std::uint64_t failed_writes = 0;
    std::uint64_t flight_recordings_lost = 0;
    std::uint64_t waiting = 0;
  };
  AuditStats stats() const;

 private:
  void run();
  bool await_work(std::unique_lock<std::mutex>& lock);
  void take_over_unwritten(std::unique_lock<std::mutex>& lock);
  bool keep_for_next_start(const std::string& line);
  std::string format_record(Eviction& eviction);
  void format_queued(std::unique_lock<std::mutex>& lock);
  void write_unwritten(std::unique_lock<std::mutex>& lock);
  void store_line(std::string line);
  void log_write_state(const Result<>& result);

  const AuditSetup setup_;
  mutable std::mutex mutex_;
  std::condition_variable work_;
  std::array<Eviction, kQueueSize> queue_;  // a ring: [first_, first_ + count_)
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  std::deque<std::string> unwritten_;
  AuditStats stats_;
  bool unkept_ = false;  // lines of unwritten_ are in no file
  bool failing_ = false;
  bool keeping_failed_ = false;
  bool stop_ = false;
  std::thread writer_;
};

// What identifies an eviction in the record and in the saved state; zero: there was no such signal.
struct RecordedEviction {
  CgroupId cgroup;
  Instant terminated_at;
  Instant killed_at;
  friend bool operator==(const RecordedEviction&, const RecordedEviction&) = default;
};

// The evictions of the last 4 MiB of each file whose victims are gone. A file that cannot be read
// has none, and a line that is no record is left out.
std::vector<RecordedEviction> recorded_evictions(const std::filesystem::path& file,
                                                 const std::filesystem::path& unwritten_file);

}  // namespace headroom::report
