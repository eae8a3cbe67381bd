// SPDX-License-Identifier: Apache-2.0
// NodeStatusWriter: writes the node's status to a file, on a thread of its own: a disk that hangs
// costs the loop nothing. Only the newest status is written, at a bounded rate.
#pragma once

#include "report/view/node_status.h"

#include <headroom/result.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <thread>

namespace headroom::daemon {

class NodeStatusWriter {
 public:
  static constexpr std::chrono::milliseconds kMinPeriod{1000};

  explicit NodeStatusWriter(std::filesystem::path path,
                            std::chrono::milliseconds min_period = kMinPeriod);
  // Writes what is still to be written.
  ~NodeStatusWriter();
  NodeStatusWriter(const NodeStatusWriter&) = delete;
  NodeStatusWriter& operator=(const NodeStatusWriter&) = delete;

  // Takes the place of what is not yet written. Any thread; never waits for the disk.
  void submit(report::NodeStatusRef status);

  std::uint64_t written() const { return written_; }
  std::uint64_t failed() const { return failed_; }

 private:
  void run();
  void write(const report::NodeStatus& status);

  const std::filesystem::path path_;
  const std::chrono::milliseconds min_period_;
  std::atomic<std::uint64_t> written_{0};
  std::atomic<std::uint64_t> failed_{0};
  bool failure_logged_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  report::NodeStatusRef next_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace headroom::daemon
