// SPDX-License-Identifier: Apache-2.0
// Sources: what the daemon reads cgroups with and hears the kernel's events through, as far as the
// kernel and the configuration let it; what is missing is said in the log.
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

// Null: nothing is told, and the next pass over the cgroups finds out.
std::unique_ptr<observe::LifecycleWatch> watch_lifecycle(config::BpfUse bpf,
                                                         const observe::BestSource& source,
                                                         observe::LifecycleWatch::OnEvent on_event);

// Null: nothing looks between our looks.
std::unique_ptr<observe::MemoryGuard> guard_memory(config::BpfUse bpf,
                                                   const observe::BestSource& source);

// Where cgroups are read from and why.
void log_source(const observe::BestSource& source);

}  // namespace headroom::daemon
