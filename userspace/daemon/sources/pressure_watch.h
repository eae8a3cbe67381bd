// SPDX-License-Identifier: Apache-2.0
// PressureWatch: reports that tasks wait for memory, in the node or in one cgroup, which may be
// created later, removed, and created again; it uses a PSI trigger of the kernel.
#pragma once

#include "base/file_io.h"
#include "daemon/sources/event_loop.h"

#include <headroom/result.h>

#include <systemd/sd-event.h>

#include <chrono>
#include <filesystem>
#include <functional>

namespace headroom::observe {

// A PSI trigger: a descriptor that is ready (EPOLLPRI) when tasks waited for as long as `stall`
// within a window, at most once a window (Documentation/accounting/psi.rst). It costs a kernel
// thread, so there are few: of the node and of all pods.

struct PsiTrigger {
  // Without CAP_SYS_RESOURCE, which the unit does not have, a window must be a multiple of two
  // seconds (since 6.5), and the trigger fires when the kernel takes its averages: up to two
  // seconds late. So a trigger makes a check earlier, and no check relies on it.
  std::chrono::microseconds window = std::chrono::seconds(2);
  std::chrono::microseconds stall = std::chrono::milliseconds(50);
};

// `file`: /proc/pressure/memory or a cgroup's memory.pressure. Fails where the kernel keeps no PSI
// (ENOENT, EOPNOTSUPP) or refuses the trigger (EINVAL).
Result<Fd> watch_pressure(const std::filesystem::path& file, PsiTrigger trigger = {});

}  // namespace headroom::observe

namespace headroom::daemon {

class PressureWatch {
 public:
  // `file`: /proc/pressure/memory or a cgroup's memory.pressure. `on_pressure` is called at most
  // once in a window of the trigger.
  PressureWatch(sd_event* event, std::filesystem::path file, std::function<void()> on_pressure);

  // Starts or restarts the watch; cheap if nothing is to be done. Error: the cgroup does not exist,
  // or the kernel has no PSI; call again later.
  Result<> start();

 private:
  static int on_ready(sd_event_source* source, int fd, uint32_t ready, void* watch);

  sd_event* event_;
  std::filesystem::path file_;
  std::function<void()> on_pressure_;
  Fd trigger_;
  EventSource source_;
};

}  // namespace headroom::daemon
