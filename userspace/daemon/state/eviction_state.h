// SPDX-License-Identifier: Apache-2.0
// EvictionState: the evictions and taint timers in progress, kept on disk for the next daemon.
#pragma once

#include "daemon/state/taint_timers_file.h"
#include "daemon/state/victims_file.h"

#include <headroom/judge.h>

#include <filesystem>
#include <vector>

namespace headroom::daemon {

class EvictionState {
 public:
  explicit EvictionState(const std::filesystem::path& state_dir)
      : victims_file_(state_dir), taint_timers_file_(state_dir) {}

  // Writes what changed since the last call. The first failure of a row is logged.
  void save(const History& history);
  // Of an earlier daemon of this boot. An unreadable file is logged and counts as empty.
  std::vector<Victim> load_victims();
  std::vector<TaintTimer> load_taint_timers();

 private:
  VictimsFile victims_file_;
  TaintTimersFile taint_timers_file_;
  bool failure_logged_ = false;
};

}  // namespace headroom::daemon
