// SPDX-License-Identifier: Apache-2.0
// SliceWorker: runs the reconciler of slices on a thread of its own, so that neither a hanging bus
// nor reading files delays the daemon's loop.
#pragma once

#include "base/file_io.h"
#include "daemon/slices/slice_reconciler.h"

#include <headroom/result.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace headroom::daemon {

class SliceWorker {
 public:
  // Between two checks if no event reports a change.
  static constexpr Duration kCheckPeriod = std::chrono::milliseconds(500);
  // Between attempts to reach systemd.
  static constexpr Duration kRetryPeriod = std::chrono::seconds(5);

  // With mode enforce, systemd must be reachable now.
  static Result<std::unique_ptr<SliceWorker>> start(observe::SliceReader reader,
                                                    CpuSet possible_cpus, SlicesMode mode);
  ~SliceWorker();
  SliceWorker(const SliceWorker&) = delete;
  SliceWorker& operator=(const SliceWorker&) = delete;

  // Any thread; never waits for the bus or a file.
  void submit(SliceOptions options);
  // The state at the last check; before the first one it has an error. Any thread.
  report::SlicesRef current() const;

 private:
  class EventLoop;
  SliceWorker(observe::SliceReader reader, CpuSet possible_cpus, Fd wake);
  void run();
  void wake() const;
  std::optional<SliceOptions> take_next();
  void publish(report::SlicesView view);

  const observe::SliceReader reader_;
  const CpuSet possible_cpus_;
  const Fd wake_;
  std::atomic<bool> stop_{false};
  mutable std::mutex mutex_;
  std::optional<SliceOptions> pending_;  // guarded by mutex_
  report::SlicesRef current_;            // guarded by mutex_
  std::thread thread_;
};

}  // namespace headroom::daemon
