// SPDX-License-Identifier: Apache-2.0
// Loop: the thread that runs the turns: its timer, signals, what other threads have read, and
// systemd's watchdog, on sd-event.
#pragma once

#include "base/log/journal.h"
#include "config/flags/command_line.h"
#include "daemon/app.h"
#include "daemon/sources/event_loop.h"
#include "daemon/sources/file_reader.h"
#include "daemon/sources/pressure_watch.h"
#include "manifest/manifest_cache.h"

#include <headroom/result.h>

#include <systemd/sd-event.h>

#include <memory>
#include <string>
#include <vector>

namespace headroom::daemon {

// FailedTurns: counts the turns in a row that threw. A loop whose every turn throws still feeds the
// watchdog, so it must end by itself: systemd then restarts the daemon and reports the failure.

class FailedTurns {
 public:
  // Each failed turn is followed by a retry after a second.
  static constexpr int kLimit = 5;

  // Runs one turn; an exception is logged. False: this is the kLimit-th turn in a row that threw.
  template <typename Turn>
  bool run(Turn&& turn) {
    in_a_row_ = log::log_exceptions("turn", turn) ? 0 : in_a_row_ + 1;
    return in_a_row_ < kLimit;
  }

 private:
  int in_a_row_ = 0;
};

// The signals it handles must be blocked (block_signals()) before any thread starts.
class Loop {
 public:
  // `manifest_cache` has read the manifests already. `configz`: the version of the kubelet's own
  // configuration that was read.
  static Result<std::unique_ptr<Loop>> open(App& app, config::CommandLine line,
                                            observe::ManifestCache manifest_cache,
                                            std::string configz);

  // Runs until SIGTERM or SIGINT.
  Result<> run();

 private:
  struct Timers {
    EventSource turn;
    EventSource heartbeat;       // reports that the loop runs
    EventSource pressure_retry;  // looks for cgroups that do not exist yet
  };

  Loop(App& app, std::unique_ptr<FileReader> files) : app_(&app), files_(std::move(files)) {}
  Result<> attach();
  Result<> add_idle_timers();
  Result<> watch_events();
  void watch_files();
  void watch_pressure();
  Result<> wake_at(Instant next);
  void turn(report::WakeSource wake);
  void request_reload();
  void use_files();
  bool reload(config::LoadResult loaded);

  void beat();
  void retry_pressure();

  static int on_heartbeat_timer(sd_event_source* source, uint64_t usec, void* loop);
  static int on_timer(sd_event_source* source, uint64_t usec, void* loop);
  static int on_hangup(sd_event_source* source, const signalfd_siginfo* info, void* loop);
  static int on_taints_edited(sd_event_source* source, int fd, uint32_t events, void* loop);
  static int on_guard(sd_event_source*, int, uint32_t, void* loop);
  static int on_events(sd_event_source* source, int fd, uint32_t ready, void* loop);
  static int on_files(sd_event_source* source, int fd, uint32_t ready, void* loop);
  static int on_pressure_retry(sd_event_source* source, uint64_t usec, void* loop);

  App* app_;
  std::unique_ptr<FileReader> files_;
  Event event_;
  Timers timers_;
  EventSource files_read_;
  EventSource guard_;
  EventSource events_;
  std::vector<std::unique_ptr<PressureWatch>> pressures_;
  FailedTurns failed_turns_;
  Instant next_;  // when the next turn is due
};

}  // namespace headroom::daemon
