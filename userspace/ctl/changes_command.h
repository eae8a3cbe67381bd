// SPDX-License-Identifier: Apache-2.0
// headroomctl changes: what headroomd has changed on the node, with the original values.
#pragma once

#include "act/units/runtime_settings.h"
#include "ctl/common/commands.h"
#include "ctl/common/text_table.h"

#include <headroom/result.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::ctl {

// The ledger: everything that headroomd has changed on the node and will restore, from the files in
// which it keeps the original values. It is also complete while no daemon runs.

struct Change {
  // "memory.high", "oom_score_adj", "cpuset.cpus", "cpuset.mems", "AllowedCPUs", "taint"
  std::string setting;
  std::string object;    // a cgroup's path, "POD-UID/CONTAINER", "the node"
  std::string current;   // as headroomd set it
  std::string original;  // what is restored
  friend bool operator==(const Change&, const Change&) = default;
};

struct LedgerFiles {
  std::filesystem::path state_dir;
  std::filesystem::path cpu_state_file;     // empty: CPUs are not assigned
  std::filesystem::path memory_state_file;  // empty: memory is not assigned
  std::filesystem::path unit_settings = act::kRuntimeSettings;
};

// Errors: a file cannot be read, or is damaged. Nothing is moved or written.
Result<std::vector<Change>> read_ledger(const LedgerFiles& files);
// The values of slices that headroomd sets in mode enforce, from its status document. The original
// values are those of the systemd units.
std::vector<Change> slice_changes(std::string_view status);

std::string render_changes(const std::vector<Change>& changes, const Screen& screen);
std::string changes_json(const std::vector<Change>& changes);

// Exit status 0; 1: a file of the ledger cannot be read.
void add_changes(ArgumentParser& app, CliCommand& chosen);

}  // namespace headroom::ctl
