// SPDX-License-Identifier: Apache-2.0
// The mounts of a process: /proc/PID/mountinfo (proc(5)).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

struct Mount {
  std::string point;
  std::string type;
  std::string options;  // of the superblock: "rw,memory" for a cgroup v1 hierarchy
};

// Of one line; absent if it has another form.
std::optional<Mount> parse_mount(std::string_view line);
// In the file's order: of two at the same point, the later hides the earlier. Other lines are left
// out.
std::vector<Mount> parse_mounts(std::string_view text);
// Empty if the file cannot be read.
std::vector<Mount> read_mounts(const std::filesystem::path& mountinfo);

// The value of a superblock option: "" of one without a value; absent if it is not there.
std::optional<std::string> mount_option(const Mount& mount, std::string_view name);

}  // namespace headroom
