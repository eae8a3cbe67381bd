// SPDX-License-Identifier: Apache-2.0
// SuspendedLimits: cpu.max, cpu.weight, cpuset.cpus and memory.high of cgroups, lifted while their
// killed processes exit, and restored afterwards: a pod or a slice may still exist after the kill.
//
// The original values are saved before anything is written, so that the next daemon restores them
// after a crash. A value that another program wrote since is kept.
#pragma once

#include <headroom/result.h>
#include <headroom/units.h>

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace headroom::act {

struct OriginalLimits {
  std::string path;                           // of the cgroup, absolute
  std::map<std::string, std::string> values;  // file name → the value found
  friend bool operator==(const OriginalLimits&, const OriginalLimits&) = default;
};

class SuspendedLimits {
 public:
  using Found = std::map<CgroupId, OriginalLimits>;
  // Saves what was found so that it outlives this process; empty: removes the file.
  using Save = std::function<Result<>(const Found&)>;

  // Without `save` the values are lost when the process ends.
  explicit SuspendedLimits(Save save = {}) : save_(std::move(save)) {}
  // Restores all limits that are still lifted.
  ~SuspendedLimits();
  SuspendedLimits(const SuspendedLimits&) = delete;
  SuspendedLimits& operator=(const SuspendedLimits&) = delete;

  // All functions may be called on any thread. A write to memory.high may wait for reclaim.

  // Lifts the limits of the cgroup and of all below it. Returns the cgroups for release(). Nothing
  // is written if the original values cannot be saved.
  std::vector<CgroupId> lift(int directory);
  // To be called once for each lift(); the last call for a cgroup restores its limits. What cannot
  // be written stays lifted and saved; each later call tries it again, and so does the next daemon.
  void release(const std::vector<CgroupId>& cgroups);
  // Restores at once, even if other victims still exit in it: a later release() changes nothing.
  void restore(CgroupId cgroup);
  // Restores the values that an earlier daemon left, then all others.
  void restore_all(Found former = {});

  // The number of cgroups.
  std::size_t lifted() const;
  // `file`: "memory.high".
  bool is_lifted(CgroupId cgroup, const std::string& file) const;

 private:
  void add(int directory, std::vector<CgroupId>& cgroups);
  void restore_unless(const std::function<bool(CgroupId)>& keep_lifted);
  void save();

  const Save save_;
  mutable std::mutex mutex_;  // protects the members below
  Found found_;
  std::map<CgroupId, int> victims_;  // number of victims for each cgroup
};

}  // namespace headroom::act
