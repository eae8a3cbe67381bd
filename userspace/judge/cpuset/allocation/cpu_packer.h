// SPDX-License-Identifier: Apache-2.0
// Packer: one packed take in progress, what it has and what it still may take (kubelet:
// cm/cpumanager/cpu_assignment.go).
#pragma once

#include "judge/cpuset/allocation/take_cpus.h"

#include <headroom/cpuset.h>
#include <headroom/topology.h>

#include <array>
#include <cstddef>
#include <vector>

namespace headroom {

class Packer {
 public:
  Packer(const Topology& topology, const CpuSet& available, int needed, WorkCounter& work);

  // Takes until nothing is needed; there must be enough.
  CpuSet pack(CpuOrder order, bool prefer_uncore);

  // Groups (indices into topology.groups(level)) with CPUs left, in the order they are taken.
  std::vector<std::size_t> in_order(Level level);

 private:
  using Order = std::vector<std::size_t>;

  bool satisfied() const { return needed_ == 0; }
  // NUMA nodes contain sockets, or the other way round; cores lie in the inner one.
  bool numa_outside() const;
  int& left_in(Level level, std::size_t group) {
    return left_[static_cast<std::size_t>(level)][group];
  }
  int size_of(Level level, std::size_t group) const {
    return topology_.groups(level)[group].cpus.size();
  }
  Order present(Level level);
  void sort(Level level, Order& groups);
  Order nested(Level outer, Level inner);

  void take(Cpu cpu);
  void take(const CpuSet& cpus);
  void take_free(Level level);
  void take_uncores();
  void take_partial_uncore(std::size_t uncore);
  void take_singles(Level within);

  const Topology& topology_;
  CpuSet remaining_;
  CpuSet taken_;
  int needed_;
  std::array<std::vector<int>, kLevels> left_;  // remaining CPUs by level and group
  WorkCounter& work_counter_;
};

}  // namespace headroom
