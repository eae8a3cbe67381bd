// SPDX-License-Identifier: Apache-2.0
// DbusThread: the D-Bus service on a thread of its own, so that a bus that hangs, or a Status() of
// a thousand pods, does not delay the daemon's loop.
//
// If the bus is missing or restarts, this is logged once and the connection is retried; the daemon
// continues without it.
#pragma once

#include "base/file_io.h"
#include "report/dbus/dbus_service.h"

#include <headroom/result.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace headroom::report {

class DbusThread {
 public:
  static constexpr std::size_t kQueueSize = 64;  // signals not yet emitted
  static constexpr std::chrono::milliseconds kRetry{10'000};

  // Fails only if no file descriptor is free.
  static Result<std::unique_ptr<DbusThread>> start(DbusSetup setup,
                                                   std::chrono::milliseconds retry = kRetry);
  ~DbusThread();
  DbusThread(const DbusThread&) = delete;
  DbusThread& operator=(const DbusThread&) = delete;

  // Queues the signal Evicted. Called on any thread; never waits for the bus.
  void evicted(const Eviction& eviction);
  // The published views differ in a property (properties_of()). Called on any thread.
  void properties_changed() const { wake(); }
  bool connected() const { return connected_; }
  std::uint64_t lost() const { return lost_; }

 private:
  DbusThread(DbusSetup setup, Fd wake, std::chrono::milliseconds retry);
  void run();
  Result<> serve();
  void emit_queued(DbusService& service);
  void log_failure(const Result<>& result);
  void wake() const;

  const DbusSetup setup_;
  const Fd wake_;
  const std::chrono::milliseconds retry_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> connected_{false};
  std::atomic<std::uint64_t> lost_{0};
  bool failure_logged_ = false;
  std::mutex mutex_;
  std::vector<EvictedSignal> queue_;
  std::thread thread_;
};

}  // namespace headroom::report
