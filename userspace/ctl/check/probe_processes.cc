// SPDX-License-Identifier: Apache-2.0
// Probes processes: which other programs kill here, and the state of headroomd's process.
#include "ctl/check/probe_host.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace headroom::ctl::check {
namespace {

namespace fs = std::filesystem;

// Names as in /proc/PID/comm: at most 15 characters.
constexpr std::array<std::string_view, 6> kConflictingDaemons{
    "systemd-oomd", "earlyoom", "oomd", "nohang", "kubelet", "k3s-server"};

std::string name_of(const fs::path& process) {
  std::ifstream comm(process / "comm");
  std::string name;
  std::getline(comm, name);
  return name;
}

// The first number after a label at the start of a line, or the second one if `last`. UINT64_MAX
// for "unlimited", 0 if the label is missing.
std::uint64_t number_after(const fs::path& file, std::string_view label, bool last = false) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(label)) continue;
    std::istringstream words(line.substr(label.size()));
    std::uint64_t first = 0, second = 0;
    if (!(words >> first)) return UINT64_MAX;  // "unlimited"
    return last && words >> second ? second : first;
  }
  return 0;
}

void read_daemon_process(DaemonFacts& daemon, const fs::path& process) {
  daemon.descriptors = number_after(process / "limits", "Max open files", true);
  daemon.locked_bytes = number_after(process / "status", "VmLck:") * 1024;
  std::ifstream(process / "oom_score_adj") >> daemon.oom_score_adj;
}

}  // namespace

void probe_processes(HostFacts& facts) {
  if (name_of("/proc/1").empty()) {
    facts.conflicting_daemons = failure("other users' processes are hidden here (hidepid)");
    return;
  }
  std::vector<std::string> conflicting_daemons;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    if (entry.path().filename().native().find_first_not_of("0123456789") != std::string::npos)
      continue;
    const std::string name = name_of(entry.path());
    if (std::find(kConflictingDaemons.begin(), kConflictingDaemons.end(), name) !=
        kConflictingDaemons.end())
      conflicting_daemons.push_back(name);
    if (name == "headroomd" && facts.daemon && *facts.daemon)
      read_daemon_process(**facts.daemon, entry.path());
  }
  std::sort(conflicting_daemons.begin(), conflicting_daemons.end());
  conflicting_daemons.erase(std::unique(conflicting_daemons.begin(), conflicting_daemons.end()),
                            conflicting_daemons.end());
  facts.conflicting_daemons = std::move(conflicting_daemons);
}

}  // namespace headroom::ctl::check
