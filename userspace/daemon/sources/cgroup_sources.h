// SPDX-License-Identifier: Apache-2.0
// Opens what the daemon reads cgroups and kernel events with, as far as the kernel and the
// configuration allow; what is missing is logged.
#pragma once

#include "config/config.h"
#include "observe/best_source.h"
#include "observe/bpf/kernel_waits.h"
#include "observe/bpf/lifecycle_watch.h"
#include "observe/bpf/memory_guard.h"
#include "observe/cgroup/cgroup_inventory.h"
#include "observe/cgroup/cgroup_root.h"

#include <headroom/result.h>

#include <memory>

namespace headroom::daemon {

struct ObserveSources {
  std::unique_ptr<observe::BestSource> source;
  observe::CgroupInventory inventory;
  std::unique_ptr<observe::KernelWaits> waits;
};

Result<ObserveSources> open_sources(const observe::CgroupRoot& root, config::BpfUse bpf);

// Null: no events are reported, and the next sweep finds out.
std::unique_ptr<observe::LifecycleWatch> watch_lifecycle(config::BpfUse bpf,
                                                         const observe::BestSource& source,
                                                         observe::LifecycleWatch::OnEvent on_event);

// Null: nothing looks between our looks.
std::unique_ptr<observe::MemoryGuard> guard_memory(config::BpfUse bpf,
                                                   const observe::BestSource& source);

// Where cgroups are read from and why.
void log_source(const observe::BestSource& source);

}  // namespace headroom::daemon
