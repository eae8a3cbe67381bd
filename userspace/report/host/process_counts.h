// SPDX-License-Identifier: Apache-2.0
// Processes of a cgroup and their open files, counted when they are asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headroom::report {

// Of the cgroup itself, as in cAdvisor: cgroups below it are not counted.
struct ProcessCounts {
  std::uint64_t processes = 0;
  std::optional<std::uint64_t> descriptors;  // absent: those of a process may not be counted
  friend bool operator==(const ProcessCounts&, const ProcessCounts&) = default;
};

class ProcessReader {
 public:
  explicit ProcessReader(std::string cgroup_root, std::string proc = "/proc");

  // `path` is from the cgroup root on. Absent: the cgroup is gone, or is a threaded one, whose
  // processes the kernel does not list.
  std::optional<ProcessCounts> of_cgroup(std::string_view path) const;
  // Without the descriptors, which takes one read of a file.
  std::optional<std::uint64_t> processes_of(std::string_view path) const;

 private:
  std::string cgroup_root_, proc_;
};

}  // namespace headroom::report
