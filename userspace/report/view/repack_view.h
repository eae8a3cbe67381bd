// SPDX-License-Identifier: Apache-2.0
// RepackView: the moves of a repacking of exclusive CPUs and their benefit, as JSON.
#pragma once

#include "judge/cpuset/repack.h"

#include <headroom/cpuset.h>

#include <string>
#include <vector>

namespace headroom::report {

struct RepackedContainer {
  std::string pod_namespace;  // "": not known
  std::string pod;            // its name; its uid if the name is unknown
  std::string uid;
  std::string container;
  CpuSet from{};  // empty: it used the shared pool
  CpuSet to{};
  CpuSet runs_on{};  // cpuset of its cgroup afterwards; empty: no cgroup, or nothing was done
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
