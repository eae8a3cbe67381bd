// SPDX-License-Identifier: Apache-2.0
#include "act/armed.h"

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

bool before(const Armed& armed, CgroupId cgroup) {
  return armed.cgroup < cgroup;
}

}  // namespace

Result<Armed> arm(CgroupId cgroup, int directory) {
  struct stat status {};
  if (::fstat(directory, &status) != 0) return errno_failure("stat cgroup directory", errno);
  // The inode number of a cgroup directory is the cgroup id (64-bit hosts, Linux 5.5).
  if (status.st_ino != cgroup.value) return failure("arm: the directory is another cgroup's");
  Armed armed{.cgroup = cgroup, .directory = {}, .kill = {}, .events = {}};
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

void Armory::keep(std::span<const PodReading> pods) {
  std::size_t listed = 0, armed = 0;
  each_cgroup(pods, [&](CgroupId cgroup) {
    ++listed;
    if (find(cgroup)) ++armed;
  });
  keep_processes(pods);
  unarmed_ = listed - armed;
  if (unarmed_ == 0 && armed_.size() == armed) return;  // the usual case: nothing came or went
  drop_unlisted(pods);
  each_cgroup(pods, [&](CgroupId cgroup) {
    if (!find(cgroup) && add(cgroup)) --unarmed_;
  });
}

// The largest of a pod is seldom another than a moment ago.
void Armory::keep_processes(std::span<const PodReading> pods) {
  const auto wanted = [](const PodReading& pod) {
    return pod.parts && pod.parts->largest && pod.parts->largest->group == CgroupId{};
  };
  std::erase_if(processes_, [&](const ArmedProcess& armed) {
    return std::none_of(pods.begin(), pods.end(), [&](const PodReading& pod) {
      return pod.cgroup == armed.pod && wanted(pod) && pod.parts->largest->name == armed.name;
    });
  });
  for (const PodReading& pod : pods) {
    if (!wanted(pod) || find(pod.cgroup, pod.parts->largest->name)) continue;
    const ProcessName name = pod.parts->largest->name;
    if (Fd process(open_process(name)); process)
      processes_.push_back({.pod = pod.cgroup, .name = name, .process = std::move(process)});
  }
}

void Armory::drop_unlisted(std::span<const PodReading> pods) {
  std::vector<CgroupId> listed;
  listed.reserve(pods.size());
  each_cgroup(pods, [&](CgroupId cgroup) { listed.push_back(cgroup); });
  std::sort(listed.begin(), listed.end());
  std::erase_if(armed_, [&](const Armed& armed) {
    return !std::binary_search(listed.begin(), listed.end(), armed.cgroup);
  });
}

bool Armory::add(CgroupId cgroup) {
  auto fresh = arm(cgroup, directory_of_(cgroup));
  if (!fresh) return false;
  armed_.insert(std::lower_bound(armed_.begin(), armed_.end(), cgroup, before), std::move(*fresh));
  return true;
}

const Armed* Armory::find(CgroupId cgroup) const {
  const auto it = std::lower_bound(armed_.begin(), armed_.end(), cgroup, before);
  return it != armed_.end() && it->cgroup == cgroup ? &*it : nullptr;
}

const ArmedProcess* Armory::find(CgroupId pod, ProcessName process) const {
  const auto it = std::find_if(
      processes_.begin(), processes_.end(),
      [&](const ArmedProcess& armed) { return armed.pod == pod && armed.name == process; });
  return it == processes_.end() ? nullptr : &*it;
}

}  // namespace headroom::act
