// SPDX-License-Identifier: Apache-2.0
// systemd's services whose names match a pattern, and their states; whether a kubelet runs.
#pragma once

#include <headroom/result.h>

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace headroom::observe {

// Whether a kubelet runs on this host, by the names of its processes.

// False, too, where other users' processes are hidden from us.
bool kubelet_runs(const std::filesystem::path& proc = "/proc");

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
