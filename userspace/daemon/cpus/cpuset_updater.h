// SPDX-License-Identifier: Apache-2.0
// CpusetUpdater: writes the cgroups' target cpusets, in an order in which no exclusive CPU has two
// owners, and repairs changes by other programs.
#pragma once

#include "act/cpus/cpuset_writer.h"
#include "judge/cpuset/cpuset_write_order.h"
#include "observe/pod/pod_cgroup_path.h"

#include <headroom/cpuset.h>
#include <headroom/result.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace headroom::daemon {

// CpuPartitions: the pods' cgroups that are isolated partitions, so that the kernel balances no
// load there and no other task of the machine runs there.
//
// The pod's cgroup is the partition, not its containers': a cgroup that passes all its CPUs on
// would itself run on all other CPUs.

class CpuPartitions {
 public:
  using Wanted = std::map<std::string, CpuSet>;  // by the pod's path

  explicit CpuPartitions(std::filesystem::path cgroup_root)
      : cgroup_root_(std::move(cgroup_root)), partition_(cgroup_root_) {}

  // To be called before any CPU changes owner: the kernel does not remove CPUs from a partition.
  void end(const observe::PodTree& tree, const Wanted& wanted);
  // To be called after the cgroups have their CPUs.
  void start(const observe::PodTree& tree, const Wanted& wanted);
  // Refused partitions are tried again.
  void forget_failures() { failures_.clear(); }

  // Whether another program ended a partition.
  bool lost() const;
  // "isolated", "member", or why the pod is not isolated as configured.
  std::string state(const std::string& path) const;
  // The CPUs that the cgroup passed on and does not run on itself.
  CpuSet passed_on(const std::string& path) const { return partition_.exclusive(path); }

 private:
  struct Failure {
    CpuSet cpus;
    std::string why;
  };

  void delegate_exclusive(const observe::PodTree& tree, const Wanted& wanted);
  void isolate(const SeenCgroup& cgroup, const CpuSet& cpus);
  bool has_cpus(const SeenCgroup& cgroup, const CpuSet& cpus) const {
    return observe::cpus_of_cgroup(cgroup_root_, cgroup) == cpus;
  }

  std::filesystem::path cgroup_root_;
  act::CpuPartition partition_;
  bool may_exist_ = true;  // partitions of an earlier daemon
  Wanted isolated_;
  std::map<std::string, Failure> failures_;  // by path
};

class CpusetUpdater {
 public:
  struct Setup {
    std::filesystem::path cgroup_root;
    // Gives a cgroup these CPUs; an empty set removes its limit. If it was removed, nothing is
    // written.
    std::function<Result<>(const SeenCgroup& cgroup, const CpuSet& cpus)> write;
    // Called before cgroups are given a limit. Error: none is.
    std::function<Result<>(const std::vector<std::string>& paths)> prepare = nullptr;
    std::function<void()> pause;  // waits a moment until a write takes effect
  };
  struct Counters {
    std::uint64_t writes = 0;    // of cpuset.cpus
    std::uint64_t failed = 0;    // writes that were refused or had no effect
    std::uint64_t repaired = 0;  // CPU sets that another program had changed
  };

  explicit CpusetUpdater(Setup setup) : setup_(std::move(setup)) {}

  // `shared`: the shared pool. With `unlimited`, a written cgroup is given no limit of its own.
  void apply(std::vector<CpuTarget> targets, const CpuSet& shared, bool unlimited);
  void forget_removed();

  // Whether another program changed a cpuset. Reads a file for each cgroup.
  bool drifted() const;
  const Counters& counters() const { return counters_; }

 private:
  void read_current(std::vector<CpuTarget>& targets) const;
  void count_drift(const std::vector<CpuTarget>& targets);
  bool prepare(const std::vector<CpuWrite>& writes, std::vector<CpuTarget>& targets);
  void write(const std::vector<CpuWrite>& writes, std::vector<CpuTarget>& targets, bool unlimited);
  void wait_for(const std::vector<CpuWrite>& writes, std::vector<CpuTarget>& targets);
  // Also of the cgroup that has the path of the one that was written.
  std::optional<CpuSet> cpus_at(const std::string& path) const {
    return observe::cpus_of_cgroup(setup_.cgroup_root, path);
  }
  // Absent: it was removed.
  std::optional<CpuSet> cpus_of(const CpuTarget& target) const {
    return observe::cpus_of_cgroup(setup_.cgroup_root,
                                   SeenCgroup{.path = target.path, .id = target.cgroup});
  }

  Setup setup_;
  struct Applied {
    CgroupId cgroup;
    CpuSet cpus;
  };
  std::map<std::string, Applied> applied_;  // by path
  Counters counters_;
};

}  // namespace headroom::daemon
