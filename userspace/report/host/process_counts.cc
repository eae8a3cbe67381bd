// SPDX-License-Identifier: Apache-2.0
#include "report/host/process_counts.h"

#include "base/file_io.h"
#include "base/process_stat.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

namespace headroom::report {
namespace {

// 0 for a process that has ended; absent: it may not be read.
std::optional<std::uint64_t> counted_entries(const std::string& directory) {
  std::error_code error;
  std::uint64_t count = 0;
  for (std::filesystem::directory_iterator at(directory, error), end; !error && at != end;
       at.increment(error))
    ++count;
  const bool ended =
      error == std::errc::no_such_file_or_directory || error == std::errc::no_such_process;
  if (ended) return 0;
  return error ? std::nullopt : std::optional(count);
}

// Since Linux 6.2 the size of /proc/PID/fd is the number of its entries. Before, it is 0.
std::optional<std::uint64_t> descriptors_of(const std::string& directory) {
  struct stat status {};
  if (::stat(directory.c_str(), &status) == 0 && status.st_size > 0)
    return static_cast<std::uint64_t>(status.st_size);
  return counted_entries(directory);
}

std::optional<std::vector<pid_t>> pids_in(const std::string& directory) {
  const Fd cgroup(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!cgroup) return std::nullopt;
  auto pids = pids_of(cgroup.get());
  return pids ? std::optional(std::move(*pids)) : std::nullopt;
}

}  // namespace

ProcessReader::ProcessReader(std::string cgroup_root, std::string proc)
    : cgroup_root_(std::move(cgroup_root)), proc_(std::move(proc)) {}

std::optional<std::uint64_t> ProcessReader::processes_of(std::string_view path) const {
  const auto pids = pids_in(cgroup_root_ + std::string(path));
  return pids ? std::optional<std::uint64_t>(pids->size()) : std::nullopt;
}

std::optional<ProcessCounts> ProcessReader::of_cgroup(std::string_view path) const {
  const auto pids = pids_in(cgroup_root_ + std::string(path));
  if (!pids) return std::nullopt;
  ProcessCounts counts{.processes = pids->size(), .descriptors = 0};
  for (const pid_t pid : *pids) {
    const auto open = descriptors_of(proc_ + '/' + std::to_string(pid) + "/fd");
    if (!open) {
      counts.descriptors.reset();
      break;
    }
    *counts.descriptors += *open;
  }
  return counts;
}

}  // namespace headroom::report
