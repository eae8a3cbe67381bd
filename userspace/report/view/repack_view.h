// SPDX-License-Identifier: Apache-2.0
// RepackView: what a repacking of exclusive CPUs moves, or would move, and what is gained: as JSON.
#pragma once

#include "judge/cpuset/repack.h"

#include <headroom/cpuset.h>

#include <string>
#include <vector>

namespace headroom::report {

struct RepackedContainer {
  std::string pod_namespace;  // "": not known
  std::string pod;            // its name, or its uid where it is not known
  std::string uid;
  std::string container;
  CpuSet from{};  // empty: it shared
  CpuSet to{};
  CpuSet runs_on{};  // as its cgroup says afterwards; empty: it has none, or nothing was done
  CpuSpread before{}, after{};
};

struct RepackView {
  bool dry_run = false;
  int moved_cpus = 0;
  PackingScore before{}, after{};
  std::vector<RepackedContainer> containers{};
};

std::string repack_json(const RepackView& view);

}  // namespace headroom::report
