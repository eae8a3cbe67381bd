// SPDX-License-Identifier: Apache-2.0
// CpuPartitions: the pods' cgroups that are isolated partitions, so that the kernel balances no
// load there and no other task of the machine runs there.
//
// The pod's cgroup is the partition, not its containers': a cgroup that passes all its CPUs on
// would itself run on all other CPUs.
#pragma once

#include "act/cpus/cpuset_writer.h"
#include "observe/pod/pod_cgroup_tree.h"

#include <headroom/cpuset.h>

#include <filesystem>
#include <map>
#include <string>

namespace headroom::daemon {

class CpuPartitions {
 public:
  using Wanted = std::map<std::string, CpuSet>;  // by the pod's path

  explicit CpuPartitions(std::filesystem::path cgroup_root)
      : cgroup_root_(std::move(cgroup_root)), partition_(cgroup_root_) {}

  // Before any CPU changes owner: the kernel takes no CPUs from a partition.
  void end(const observe::PodTree& tree, const Wanted& wanted);
  // After the cgroups have their CPUs.
  void start(const observe::PodTree& tree, const Wanted& wanted);
  // A refused partition is tried again.
  void forget_failures() { failures_.clear(); }

  // Another program ended one.
  bool lost() const;
  // "isolated", "member", or why the pod is not isolated as configured.
  std::string state(const std::string& path) const;
  // CPUs that the cgroup passed on, and does not run on itself.
  CpuSet passed_on(const std::string& path) const { return partition_.exclusive(path); }

 private:
  struct Failure {
    CpuSet cpus;
    std::string why;
  };

  void delegate_exclusive(const observe::PodTree& tree, const Wanted& wanted);
  void isolate(const std::string& path, const CpuSet& cpus);
  bool has_cpus(const std::string& path, const CpuSet& cpus) const {
    return observe::cpus_of_cgroup(cgroup_root_, path) == cpus;
  }

  std::filesystem::path cgroup_root_;
  act::CpuPartition partition_;
  bool may_exist_ = true;  // those of an earlier daemon
  Wanted isolated_;
  std::map<std::string, Failure> failures_;  // by path
};

}  // namespace headroom::daemon
