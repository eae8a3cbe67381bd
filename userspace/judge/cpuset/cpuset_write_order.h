// SPDX-License-Identifier: Apache-2.0
// Stages: in which order cgroups are given their CPUs, so that no CPU is ever exclusive to two and
// no cgroup is ever without one.
//
// First everybody lets go of what is not his any more; who would have nothing left moves to the
// shared pool meanwhile; only when all that is done does anybody get more. Each stage is worked out
// from what the kernel says then, so whatever failed, or was changed by others, is taken account
// of.
#pragma once

#include <headroom/cpuset.h>

#include <span>
#include <string>
#include <vector>

namespace headroom {

// One cgroup whose CPUs are ours to say.
struct CpuTarget {
  std::string path;    // from the cgroup root on
  CpuSet has;          // what its tasks may run on now
  CpuSet wanted;       // never empty
  bool stuck = false;  // it did not take what it was given: left alone, and what it has with it
};

struct CpuWrite {
  std::string path;
  CpuSet cpus;
  friend bool operator==(const CpuWrite&, const CpuWrite&) = default;
};

// What to write next; nothing: all is as wanted, or stuck. Parents before their children.
std::vector<CpuWrite> next_writes(std::span<const CpuTarget> targets, const CpuSet& shared);

}  // namespace headroom
