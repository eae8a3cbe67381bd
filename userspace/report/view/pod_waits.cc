// SPDX-License-Identifier: Apache-2.0
#include "report/view/pod_waits.h"

namespace headroom::report {
namespace {

template <class Value>
void sum_by_pod(const WaitTable<Value>& waits, const PodIndex& pods,
                std::unordered_map<std::uint64_t, Value>& totals) {
  for (std::size_t i = 0; i < waits.ids.size(); ++i) {
    const hr_record* record = pods.record_of(CgroupId{waits.ids[i]});
    const PodRow* pod = record ? pods.pod_of(*record) : nullptr;
    if (pod) add(waits.values[i], totals[pod->cgroup.value]);
  }
}

template <class Value>
const Value* find(const std::unordered_map<std::uint64_t, Value>& all, CgroupId pod) {
  const auto found = all.find(pod.value);
  return found == all.end() ? nullptr : &found->second;
}

}  // namespace

std::unordered_map<std::uint64_t, const CpuWaits*> cpu_waits_by_pod(const CgroupTable& table) {
  std::unordered_map<std::uint64_t, const CpuWaits*> waits;
  for (std::size_t i = 0; i < table.cpu_waits.ids.size(); ++i)
    waits.emplace(table.cpu_waits.ids[i], &table.cpu_waits.values[i]);
  return waits;
}

PodWaits::PodWaits(const CgroupTable& table, const PodIndex& pods) {
  sum_by_pod(table.stalls, pods, stalls_);
  knows_all_stalls_ = table.stalls.lists_all();
  sum_by_pod(table.throttles, pods, throttles_);
  cpu_ = cpu_waits_by_pod(table);
}

const hr_stalls* PodWaits::stalls(CgroupId pod) const {
  return find(stalls_, pod);
}
const hr_waits* PodWaits::throttles(CgroupId pod) const {
  return find(throttles_, pod);
}

const CpuWaits* PodWaits::cpu(CgroupId pod) const {
  const auto found = cpu_.find(pod.value);
  return found == cpu_.end() ? nullptr : found->second;
}

}  // namespace headroom::report
