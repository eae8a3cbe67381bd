// SPDX-License-Identifier: Apache-2.0
// CpusetUnits: the cgroups that were given CPUs or NUMA nodes, in a state file. systemd keeps such
// a setting of a unit that has stopped, and its next start has it: a daemon that finds the file
// after a crash removes it.
#pragma once

#include "base/state/state_file.h"

#include <headroom/result.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace headroom::act {

using CpusetUnitsFile = state::StateFile<std::vector<std::string>>;  // paths from the cgroup root
CpusetUnitsFile cpuset_units_file(const std::filesystem::path& state_dir);

// Not thread-safe. The file is read at the first use, not before.
class CpusetUnits {
 public:
  explicit CpusetUnits(CpusetUnitsFile file) : file_(std::move(file)) {}

  // To be called before their first write. Error: they are not in the file, and must not be
  // written.
  Result<> add(const std::vector<std::string>& paths);
  // To be called when none of their settings is left. If the file cannot be written, the next
  // daemon finds paths too many, which have no settings.
  void remove(const std::vector<std::string>& paths);
  const std::set<std::string>& paths();

 private:
  Result<> save() const;

  CpusetUnitsFile file_;
  bool loaded_ = false;
  std::set<std::string> paths_;
};

}  // namespace headroom::act
