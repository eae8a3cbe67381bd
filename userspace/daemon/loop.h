// SPDX-License-Identifier: Apache-2.0
// Loop: the one thread that turns the engine: its timer, signals, the manifests' directory, and
// systemd's watchdog, on sd-event.
#pragma once

#include "base/fd.h"
#include "config/command_line.h"
#include "daemon/node.h"

#include <headroom/result.h>

#include <systemd/sd-event.h>

#include <memory>

namespace headroom::daemon {

// Signals the loop handles must be blocked before any thread starts.
void block_signals();

class Loop {
 public:
  static Result<std::unique_ptr<Loop>> open(Node& node, config::CommandLine line);

  // Until SIGTERM or SIGINT.
  Result<> run();

 private:
  struct Unref {
    void operator()(sd_event* event) const { sd_event_unref(event); }
    void operator()(sd_event_source* source) const { sd_event_source_unref(source); }
  };
  using Source = std::unique_ptr<sd_event_source, Unref>;

  Loop(Node& node, config::CommandLine line) : node_(&node), line_(std::move(line)) {}
  Result<> attach();
  Result<> watch_manifests();
  Result<> watch_events();
  Result<> watch_pressure();
  Result<> wake_at(Instant next);
  void turn(report::Wake wake);
  void reload();
  void read_manifests();

  static int on_timer(sd_event_source* source, uint64_t usec, void* loop);
  static int on_hangup(sd_event_source* source, const signalfd_siginfo* info, void* loop);
  static int on_edits(sd_event_source* source, int fd, uint32_t events, void* loop);
  static int on_events(sd_event_source* source, int fd, uint32_t ready, void* loop);
  static int on_pressure(sd_event_source* source, int fd, uint32_t ready, void* loop);
  static int on_manifests(sd_event_source* source, const inotify_event* event, void* loop);

  Node* node_;
  config::CommandLine line_;
  std::unique_ptr<sd_event, Unref> event_;
  Source timer_;
  Source manifests_;
  Source events_;
  Fd pressure_;  // none: the kernel keeps no PSI
  Source pressure_source_;
  Instant next_;  // when the timer goes off
};

}  // namespace headroom::daemon
