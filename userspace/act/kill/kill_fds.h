// SPDX-License-Identifier: Apache-2.0
// KillFds: the descriptors that a kill will need, opened before it is needed.
#pragma once

#include "base/file_io.h"

#include <headroom/result.h>
#include <headroom/snapshot.h>

#include <unistd.h>

#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace headroom::act {

// Whether a cgroup has a live process in or below it.

// `events` is an open cgroup.events. Unknown counts as populated: a kill of an empty cgroup does no
// harm, a kill left out does.
inline bool cgroup_populated(int events) {
  char text[128];
  const ssize_t n = ::pread(events, text, sizeof text, 0);
  if (n <= 0) return true;
  return std::string_view(text, static_cast<std::size_t>(n)).find("populated 0") ==
         std::string_view::npos;
}

// Gives a directory descriptor of the cgroup with this id, or -1. It stays the caller's.
using DirectoryOf = std::function<int(CgroupId)>;

// An open file of a cgroup belongs to that very cgroup: once it is removed, even if its path exists
// again, a write fails with ENODEV. So identity is checked once, when the files are opened.
struct CgroupKillFds {
  CgroupId cgroup;
  Fd directory;
  Fd kill;    // cgroup.kill, write-only (Linux 5.14)
  Fd events;  // cgroup.events
};

// A process that may be killed alone.
struct ProcessKillFd {
  CgroupId pod;
  ProcessIdentity name;
  Fd process;  // a pidfd
  bool is_listed = true;
};

class KillFds {
 public:
  explicit KillFds(DirectoryOf directory_of) : directory_of_(std::move(directory_of)) {}

  // Opens what is new in `pods` and of their parts, closes what is no longer there. Allocates only
  // when some came.
  void update(std::span<const PodReading> pods);
  // Null: not armed. Allocates nothing. Of a pod, or of a part of one.
  const CgroupKillFds* find(CgroupId cgroup) const;
  // Null: it is not the pod's largest any more, or never was.
  const ProcessKillFd* find(CgroupId pod, ProcessIdentity process) const;

  std::size_t size() const { return cgroups_.size(); }
  // Pods that could not be armed at the last keep() (vanished meanwhile, or out of descriptors).
  std::size_t missing() const { return missing_; }

 private:
  void close_unlisted(std::span<const PodReading> pods);
  bool is_unchanged(std::span<const PodReading> pods) const;
  void update_processes(std::span<const PodReading> pods);
  void add_process(CgroupId pod, ProcessIdentity name);
  bool add(CgroupId cgroup);

  DirectoryOf directory_of_;
  std::vector<CgroupKillFds> cgroups_;    // sorted by id
  std::vector<CgroupId> listed_;          // as the last update() was called with
  std::vector<ProcessKillFd> processes_;  // sorted by pod, one each at the most
  std::size_t missing_ = 0;
};

// Opens the files of the cgroup behind `directory`, having checked that it has this id.
Result<CgroupKillFds> open_kill_fds(CgroupId cgroup, int directory);

}  // namespace headroom::act
