// SPDX-License-Identifier: Apache-2.0
// Restores what a daemon that has ended left changed, from its state files, without starting one: a
// start that fails does it, and `headroomd --restore`, which the packages run before they remove
// headroomd.
//
// The next daemon does the same at its start. These are for the case that there is none.
#pragma once

#include "config/config.h"

#include <headroom/result.h>

#include <filesystem>
#include <vector>

namespace headroom::daemon {

// State files of which a value could not be restored; why is in the log. The values stay in them; a
// file that is damaged was renamed to NAME.damaged. While memory.high or cpu.weight is
// still lifted for a kill, overrides of the same file are not tried.
using Unrestored = std::vector<std::filesystem::path>;

// memory.high, memory.max, cpu.max.burst, cpu.idle, cpu.weight, memory.swap.high,
// memory.zswap.writeback, oom_score_adj, and the limits that were lifted for a kill. Containers
// keep their CPUs and memory nodes. `cgroup_root`: of the cgroup v2 mount. May wait some
// seconds for systemd.
Unrestored restore_limits(const std::filesystem::path& cgroup_root,
                          const std::filesystem::path& state_dir);

// The same, if no other daemon of this node is in mode enforce; else nothing. For a daemon that
// cannot start.
void restore_limits_of_no_daemon(const std::filesystem::path& state_dir);

// The limits, and the CPUs and NUMA nodes of all containers, as with cpuManagerPolicy: none and
// memoryManagerPolicy: None. Error: this is no
// cgroup v2 host, or another daemon is in mode enforce, and nothing was done; or not everything
// could be restored: the message has the state files.
Result<> restore_everything(const config::Config& config);

}  // namespace headroom::daemon
