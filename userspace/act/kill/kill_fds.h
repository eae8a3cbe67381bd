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

// `events` is an open cgroup.events. If it cannot be read, the cgroup counts as populated: killing
// an empty cgroup does no harm.
inline bool cgroup_populated(int events) {
  char text[128];
  const ssize_t n = ::pread(events, text, sizeof text, 0);
  if (n <= 0) return true;
  return std::string_view(text, static_cast<std::size_t>(n)).find("populated 0") ==
         std::string_view::npos;
}

// Returns a directory descriptor of the cgroup with this id, or -1. It is not closed by the caller.
using DirectoryOf = std::function<int(CgroupId)>;

// An open file of a cgroup refers to that cgroup only: after its removal a write fails with ENODEV,
// even if another cgroup has the same path. So the identity is checked once, when the files are
// opened.
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

  // Opens descriptors for new pods and parts in `pods`, and closes those of pods that are not
  // listed. Allocates only for new ones.
  void update(std::span<const PodReading> pods);
  // The descriptors of a pod's or a part's cgroup; null: not open. Allocates nothing.
  const CgroupKillFds* find(CgroupId cgroup) const;
  // Null: the process is not the largest of the pod.
  const ProcessKillFd* find(CgroupId pod, ProcessIdentity process) const;

  std::size_t size() const { return cgroups_.size(); }
  // Pods whose descriptors could not be opened at the last update(): removed meanwhile, or no
  // descriptor was free.
  std::size_t missing() const { return missing_; }

 private:
  void close_unlisted(std::span<const PodReading> pods);
  bool is_unchanged(std::span<const PodReading> pods) const;
  void update_processes(std::span<const PodReading> pods);
  void add_process(CgroupId pod, ProcessIdentity name);
  bool add(CgroupId cgroup);

  DirectoryOf directory_of_;
  std::vector<CgroupKillFds> cgroups_;    // sorted by id
  std::vector<CgroupId> listed_;          // the cgroups of the last update()
  std::vector<ProcessKillFd> processes_;  // sorted by pod, at most one for each pod
  std::size_t missing_ = 0;
};

// Opens the files of the cgroup behind `directory`, having checked that it has this id.
Result<CgroupKillFds> open_kill_fds(CgroupId cgroup, int directory);

}  // namespace headroom::act
