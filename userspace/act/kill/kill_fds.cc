// SPDX-License-Identifier: Apache-2.0
#include "act/kill/kill_fds.h"

#include "base/process_stat.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

namespace headroom::act {
namespace {

Result<Fd> open_at(int directory, const char* file, int flags) {
  Fd fd(::openat(directory, file, flags | O_CLOEXEC));
  if (!fd) return errno_failure(std::string("open ") + file, errno);
  return fd;
}

bool before(const CgroupKillFds& kill_fds, CgroupId cgroup) {
  return kill_fds.cgroup < cgroup;
}

bool before_pod(const ProcessKillFd& kill_fds, CgroupId pod) {
  return kill_fds.pod < pod;
}

}  // namespace

Result<CgroupKillFds> open_kill_fds(CgroupId cgroup, int directory) {
  struct stat status {};
  if (::fstat(directory, &status) != 0) return errno_failure("stat cgroup directory", errno);
  // The inode number of a cgroup directory is the cgroup id (64-bit hosts, Linux 5.5).
  if (status.st_ino != cgroup.value) return failure("arm: the directory is another cgroup's");
  CgroupKillFds kill_fds{.cgroup = cgroup, .directory = {}, .kill = {}, .events = {}};
  auto own = open_at(directory, ".", O_DIRECTORY | O_RDONLY);
  if (!own) return tl::make_unexpected(own.error());
  auto kill = open_at(directory, "cgroup.kill", O_WRONLY);
  if (!kill) return tl::make_unexpected(kill.error());
  auto events = open_at(directory, "cgroup.events", O_RDONLY);
  if (!events) return tl::make_unexpected(events.error());
  kill_fds.directory = std::move(*own);
  kill_fds.kill = std::move(*kill);
  kill_fds.events = std::move(*events);
  return kill_fds;
}

namespace {

template <class Visit>
void for_each_cgroup_of(std::span<const PodReading> pods, Visit&& visit) {
  for (const PodReading& pod : pods) {
    visit(pod.cgroup);
    if (!pod.parts) continue;
    for (const PartReading& part : pod.parts->parts)
      visit(part.cgroup);
  }
}

}  // namespace

void KillFds::update(std::span<const PodReading> pods) {
  update_processes(pods);
  if (missing_ == 0 && is_unchanged(pods)) return;  // the usual case: the same pods as before
  close_unlisted(pods);
  listed_.clear();
  missing_ = 0;
  for_each_cgroup_of(pods, [&](CgroupId cgroup) {
    listed_.push_back(cgroup);
    if (!find(cgroup) && !add(cgroup)) ++missing_;
  });
}

bool KillFds::is_unchanged(std::span<const PodReading> pods) const {
  std::size_t at = 0;
  bool same = true;
  for_each_cgroup_of(pods, [&](CgroupId cgroup) {
    same = same && at < listed_.size() && listed_[at] == cgroup;
    ++at;
  });
  return same && at == listed_.size();
}

// The largest process of a pod seldom changes.
void KillFds::update_processes(std::span<const PodReading> pods) {
  for (ProcessKillFd& kill_fds : processes_)
    kill_fds.is_listed = false;
  for (const PodReading& pod : pods)
    if (pod.parts && pod.parts->largest && pod.parts->largest->group == CgroupId{})
      add_process(pod.cgroup, pod.parts->largest->name);
  std::erase_if(processes_, [](const ProcessKillFd& kill_fds) { return !kill_fds.is_listed; });
}

void KillFds::add_process(CgroupId pod, ProcessIdentity name) {
  const auto at = std::lower_bound(processes_.begin(), processes_.end(), pod, before_pod);
  const bool known = at != processes_.end() && at->pod == pod;
  if (known && at->name == name) {
    at->is_listed = true;
    return;
  }
  Fd process(open_process(name));
  if (!process) return;
  ProcessKillFd kill_fds{.pod = pod, .name = name, .process = std::move(process)};
  if (known)
    *at = std::move(kill_fds);
  else
    processes_.insert(at, std::move(kill_fds));
}

void KillFds::close_unlisted(std::span<const PodReading> pods) {
  std::vector<CgroupId> listed;
  listed.reserve(pods.size());
  for_each_cgroup_of(pods, [&](CgroupId cgroup) { listed.push_back(cgroup); });
  std::sort(listed.begin(), listed.end());
  std::erase_if(cgroups_, [&](const CgroupKillFds& kill_fds) {
    return !std::binary_search(listed.begin(), listed.end(), kill_fds.cgroup);
  });
}

bool KillFds::add(CgroupId cgroup) {
  auto opened = open_kill_fds(cgroup, directory_of_(cgroup));
  if (!opened) return false;
  cgroups_.insert(std::lower_bound(cgroups_.begin(), cgroups_.end(), cgroup, before),
                  std::move(*opened));
  return true;
}

const CgroupKillFds* KillFds::find(CgroupId cgroup) const {
  const auto it = std::lower_bound(cgroups_.begin(), cgroups_.end(), cgroup, before);
  return it != cgroups_.end() && it->cgroup == cgroup ? &*it : nullptr;
}

const ProcessKillFd* KillFds::find(CgroupId pod, ProcessIdentity process) const {
  const auto it = std::lower_bound(processes_.begin(), processes_.end(), pod, before_pod);
  return it != processes_.end() && it->pod == pod && it->name == process ? &*it : nullptr;
}

}  // namespace headroom::act
