// SPDX-License-Identifier: Apache-2.0
// SliceKeeper: cares for the slices on a thread of its own, so that neither a bus that hangs nor
// the reading of files costs the daemon's loop any time.
#pragma once

#include "base/fd.h"
#include "daemon/slice_care.h"

#include <headroom/result.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace headroom::daemon {

class SliceKeeper {
 public:
  // Between two looks where nothing tells of a change.
  static constexpr Duration kEvery = std::chrono::milliseconds(500);
  // Between attempts to reach systemd.
  static constexpr Duration kRetry = std::chrono::seconds(5);

  // To enforce, systemd must be within reach now.
  static Result<std::unique_ptr<SliceKeeper>> start(observe::SliceReader reader,
                                                    CpuSet possible_cpus, SlicesMode mode);
  ~SliceKeeper();
  SliceKeeper(const SliceKeeper&) = delete;
  SliceKeeper& operator=(const SliceKeeper&) = delete;

  // Any thread; never waits for the bus or a file.
  void submit(SliceTerms terms);
  // As of the last look; before the first that is its trouble. Any thread.
  report::SlicesRef current() const;

 private:
  class Round;
  SliceKeeper(observe::SliceReader reader, CpuSet possible_cpus, Fd wake);
  void run();
  void wake() const;
  std::optional<SliceTerms> take();
  void show(report::SlicesView view);

  const observe::SliceReader reader_;
  const CpuSet possible_cpus_;
  const Fd wake_;
  std::atomic<bool> stop_{false};
  mutable std::mutex mutex_;
  std::optional<SliceTerms> next_;  // guarded by mutex_
  report::SlicesRef shown_;         // guarded by mutex_
  std::thread thread_;
};

}  // namespace headroom::daemon
