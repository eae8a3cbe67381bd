// SPDX-License-Identifier: Apache-2.0
// The order in which cpusets are written, so that no CPU is ever exclusive to two containers and no
// cgroup is ever without a CPU.
//
// First every cgroup releases the CPUs it no longer owns; one that would have none left moves to
// the shared pool for now; only then does any cgroup get more. Each stage is computed from what the
// kernel says at that moment, so a failed write or a change by another program is taken into
// account.
#pragma once

#include <headroom/cpuset.h>
#include <headroom/units.h>

#include <span>
#include <string>
#include <vector>

namespace headroom {

// One cgroup whose CPUs headroom sets.
struct CpuTarget {
  std::string path;    // from the cgroup root on
  CpuSet has;          // what its tasks may run on now
  CpuSet wanted;       // never empty
  bool stuck = false;  // it did not take what it was given: left alone, and what it has with it
  CgroupId cgroup{};   // that is meant, whichever has the path
};

struct CpuWrite {
  std::string path;
  CpuSet cpus;
  friend bool operator==(const CpuWrite&, const CpuWrite&) = default;
};

// What to write next; nothing: all is as wanted, or stuck. Parents before their children.
std::vector<CpuWrite> next_writes(std::span<const CpuTarget> targets, const CpuSet& shared);

}  // namespace headroom
