// SPDX-License-Identifier: Apache-2.0
// PressureWatch: reports that tasks wait for memory, in the node or in one cgroup, which may be
// created later, removed, and created again.
#pragma once

#include "base/file_io.h"

#include <headroom/result.h>

#include <systemd/sd-event.h>

#include <filesystem>
#include <functional>
#include <memory>

namespace headroom::daemon {

class PressureWatch {
 public:
  // `file`: /proc/pressure/memory or a cgroup's memory.pressure. `risen` at most once a window of
  // the trigger (observe/pressure_trigger.h).
  PressureWatch(sd_event* event, std::filesystem::path file, std::function<void()> on_pressure);

  // Begins, or begins again; cheap where there is nothing to do. An error: the cgroup is not there
  // yet, or the kernel keeps no PSI; to be tried again now and then.
  Result<> start();

 private:
  struct Unref {
    void operator()(sd_event_source* source) const { sd_event_source_unref(source); }
  };
  static int on_ready(sd_event_source* source, int fd, uint32_t ready, void* watch);

  sd_event* event_;
  std::filesystem::path file_;
  std::function<void()> on_pressure_;
  Fd trigger_;
  std::unique_ptr<sd_event_source, Unref> source_;
};

}  // namespace headroom::daemon
