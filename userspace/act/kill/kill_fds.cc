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

bool before(const CgroupKillFds& armed, CgroupId cgroup) {
  return armed.cgroup < cgroup;
}

bool of_lesser_pod(const ProcessKillFd& armed, CgroupId pod) {
  return armed.pod < pod;
}

}  // namespace

Result<CgroupKillFds> arm(CgroupId cgroup, int directory) {
  struct stat status {};
  if (::fstat(directory, &status) != 0) return errno_failure("stat cgroup directory", errno);
  // The inode number of a cgroup directory is the cgroup id (64-bit hosts, Linux 5.5).
  if (status.st_ino != cgroup.value) return failure("arm: the directory is another cgroup's");
  CgroupKillFds armed{.cgroup = cgroup, .directory = {}, .kill = {}, .events = {}};
  auto own = open_at(directory, ".", O_DIRECTORY | O_RDONLY);
  if (!own) return tl::make_unexpected(own.error());
  auto kill = open_at(directory, "cgroup.kill", O_WRONLY);
  if (!kill) return tl::make_unexpected(kill.error());
  auto events = open_at(directory, "cgroup.events", O_RDONLY);
  if (!events) return tl::make_unexpected(events.error());
  armed.directory = std::move(*own);
  armed.kill = std::move(*kill);
  armed.events = std::move(*events);
  return armed;
}

namespace {

template <class Visit>
void each_cgroup(std::span<const PodReading> pods, Visit&& visit) {
  for (const PodReading& pod : pods) {
    visit(pod.cgroup);
    if (!pod.parts) continue;
    for (const PartReading& part : pod.parts->parts)
      visit(part.cgroup);
  }
}

}  // namespace

void KillFds::keep(std::span<const PodReading> pods) {
  keep_processes(pods);
  if (unarmed_ == 0 && lists_the_same(pods)) return;  // the usual case: nothing came or went
  drop_unlisted(pods);
  listed_.clear();
  unarmed_ = 0;
  each_cgroup(pods, [&](CgroupId cgroup) {
    listed_.push_back(cgroup);
    if (!find(cgroup) && !add(cgroup)) ++unarmed_;
  });
}

bool KillFds::lists_the_same(std::span<const PodReading> pods) const {
  std::size_t at = 0;
  bool same = true;
  each_cgroup(pods, [&](CgroupId cgroup) {
    same = same && at < listed_.size() && listed_[at] == cgroup;
    ++at;
  });
  return same && at == listed_.size();
}

// The largest of a pod is seldom another than a moment ago.
void KillFds::keep_processes(std::span<const PodReading> pods) {
  for (ProcessKillFd& armed : processes_)
    armed.wanted = false;
  for (const PodReading& pod : pods)
    if (pod.parts && pod.parts->largest && pod.parts->largest->group == CgroupId{})
      want(pod.cgroup, pod.parts->largest->name);
  std::erase_if(processes_, [](const ProcessKillFd& armed) { return !armed.wanted; });
}

void KillFds::want(CgroupId pod, ProcessIdentity name) {
  const auto at = std::lower_bound(processes_.begin(), processes_.end(), pod, of_lesser_pod);
  const bool known = at != processes_.end() && at->pod == pod;
  if (known && at->name == name) {
    at->wanted = true;
    return;
  }
  Fd process(open_process(name));
  if (!process) return;
  ProcessKillFd armed{.pod = pod, .name = name, .process = std::move(process)};
  if (known)
    *at = std::move(armed);
  else
    processes_.insert(at, std::move(armed));
}

void KillFds::drop_unlisted(std::span<const PodReading> pods) {
  std::vector<CgroupId> listed;
  listed.reserve(pods.size());
  each_cgroup(pods, [&](CgroupId cgroup) { listed.push_back(cgroup); });
  std::sort(listed.begin(), listed.end());
  std::erase_if(armed_, [&](const CgroupKillFds& armed) {
    return !std::binary_search(listed.begin(), listed.end(), armed.cgroup);
  });
}

bool KillFds::add(CgroupId cgroup) {
  auto fresh = arm(cgroup, directory_of_(cgroup));
  if (!fresh) return false;
  armed_.insert(std::lower_bound(armed_.begin(), armed_.end(), cgroup, before), std::move(*fresh));
  return true;
}

const CgroupKillFds* KillFds::find(CgroupId cgroup) const {
  const auto it = std::lower_bound(armed_.begin(), armed_.end(), cgroup, before);
  return it != armed_.end() && it->cgroup == cgroup ? &*it : nullptr;
}

const ProcessKillFd* KillFds::find(CgroupId pod, ProcessIdentity process) const {
  const auto it = std::lower_bound(processes_.begin(), processes_.end(), pod, of_lesser_pod);
  return it != processes_.end() && it->pod == pod && it->name == process ? &*it : nullptr;
}

}  // namespace headroom::act
