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
  std::string options;      // of the superblock: "rw,memory" for a cgroup v1 hierarchy
  std::string source = {};  // "/dev/vda1"; of an overlay "overlay" or what its mounter named
};

// Parses one line; absent if it has another form.
std::optional<Mount> parse_mount(std::string_view line);
// In the file's order: of two mounts at the same point, the later hides the earlier. Lines of
// another form are left out.
std::vector<Mount> parse_mounts(std::string_view text);
// Empty if the file cannot be read.
std::vector<Mount> read_mounts(const std::filesystem::path& mountinfo);

// The value of a superblock option; "" for an option without a value; absent if there is no such
// option.
std::optional<std::string> mount_option(const Mount& mount, std::string_view name);

}  // namespace headroom
