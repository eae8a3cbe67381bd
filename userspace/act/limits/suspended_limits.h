// SPDX-License-Identifier: Apache-2.0
// SuspendedLimits: cpu.max, cpu.weight, cpuset.cpus and memory.high of cgroups, lifted while their
// killed processes exit, and restored afterwards: a pod or a slice may live on after the kill.
//
// The original values are saved before anything is written, so that the next daemon restores them
// after a crash. A value that another program wrote meanwhile stays.
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

  // Without `save` nothing outlives this process.
  explicit SuspendedLimits(Save save = {}) : save_(std::move(save)) {}
  // Restores what is still lifted.
  ~SuspendedLimits();
  SuspendedLimits(const SuspendedLimits&) = delete;
  SuspendedLimits& operator=(const SuspendedLimits&) = delete;

  // All of these on any thread. A write to memory.high may wait for reclaim.

  // The cgroup and all below it. Returns the cgroups that release() is to be called with. Nothing
  // is written if the values found cannot be saved.
  std::vector<CgroupId> lift(int directory);
  // One victim less; the last one of a cgroup restores it.
  void release(const std::vector<CgroupId>& cgroups);
  // At once, whatever else still exits in it: a later release() changes nothing.
  void restore(CgroupId cgroup);
  // What an earlier daemon left, and then everything.
  void restore_all(Found former = {});

  std::size_t lifted() const;

 private:
  void add(int directory, std::vector<CgroupId>& cgroups);
  void save();

  const Save save_;
  mutable std::mutex mutex_;  // of all below
  Found found_;
  std::map<CgroupId, int> victims_;  // of which each cgroup waits for the exit
};

}  // namespace headroom::act
