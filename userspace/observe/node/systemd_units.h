// SPDX-License-Identifier: Apache-2.0
// systemd's services whose names match a pattern, and their states.
#pragma once

#include <headroom/result.h>

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace headroom::observe {

struct UnitState {
  std::string unit;
  std::string active;              // "active", "failed", ...
  std::string sub;                 // "running", ...
  std::string cgroup{};            // "/kubepods.slice/..."; "": none now
  pid_t main_pid = 0;              // 0: none
  std::uint64_t since_realtime{};  // microseconds: when it came to be active; 0: it has not
};

// By name. `pattern` as of glob(7): "headroom-run-*.service".
Result<std::vector<UnitState>> list_systemd_units(const std::string& pattern);

}  // namespace headroom::observe
