// SPDX-License-Identifier: Apache-2.0
// PodWaits: the waits of each pod, summed over its cgroups.
#pragma once

#include "report/view/node_view.h"
#include "report/view/pod_index.h"

#include <cstdint>
#include <unordered_map>

namespace headroom::report {

// CgroupTable::cpu_waits by the pod's cgroup.
std::unordered_map<std::uint64_t, const CpuWaits*> cpu_waits_by_pod(const CgroupTable& table);

class PodWaits {
 public:
  PodWaits(const CgroupTable& table, const PodIndex& pods);

  // Null: no waits, or unknown.
  const hr_stalls* stalls(CgroupId pod) const;
  // A pod without stalls never waited for memory; else that is unknown.
  bool knows_all_stalls() const { return knows_all_stalls_; }
  const hr_waits* throttles(CgroupId pod) const;
  // For a CPU, by cause; null: unknown.
  const CpuWaits* cpu(CgroupId pod) const;

 private:
  std::unordered_map<std::uint64_t, hr_stalls> stalls_;
  bool knows_all_stalls_ = false;
  std::unordered_map<std::uint64_t, hr_waits> throttles_;
  std::unordered_map<std::uint64_t, const CpuWaits*> cpu_;
};

// A table with an index, built once for several lookups.
struct IndexedCgroupTable {
  explicit IndexedCgroupTable(const CgroupTable& the_table)
      : table(the_table), index(the_table), waits(the_table, index) {}

  const CgroupTable& table;
  const PodIndex index;
  const PodWaits waits;
};

}  // namespace headroom::report
