// SPDX-License-Identifier: Apache-2.0
// headroom_wait_pair_seconds: which pods waited while which others had what they waited for.
#include "report/metrics/metric_family.h"
#include "report/metrics/metrics.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace headroom::report {
namespace {

// Of each resource; the rest of the pairs is in the status document.
constexpr std::size_t kMaxPairs = 10;

using PodsByCgroup = std::unordered_map<std::uint64_t, const Pod*>;

void add_pairs(std::string_view resource, const std::vector<WaitPair>& pairs,
               const PodsByCgroup& pods, MetricFamilyBuilder& family) {
  const Pod none;
  for (std::size_t i = 0; i < std::min(kMaxPairs, pairs.size()); ++i) {
    const auto waiter = pods.find(pairs[i].waiter.value);
    const auto holder = pods.find(pairs[i].holder.value);
    const bool outside = pairs[i].holder.value == 0;
    if (waiter == pods.end() || (holder == pods.end() && !outside)) continue;  // it is gone
    const Pod& of_holder = outside ? none : *holder->second;
    family.add(static_cast<double>(pairs[i].ns) / 1e9,
               {{"holder_namespace", of_holder.pod_namespace},
                {"holder_pod", of_holder.name},
                {"holder_uid", of_holder.uid},
                {"resource", resource},
                {"waiter_namespace", waiter->second->pod_namespace},
                {"waiter_pod", waiter->second->name},
                {"waiter_uid", waiter->second->uid}});
  }
}

}  // namespace

void add_wait_pair_families(const CgroupTable& table, Families& families) {
  PodsByCgroup pods;
  for (const PodRow& row : table.pods)
    pods.emplace(row.cgroup.value, row.pod.get());
  auto family = MetricFamilyBuilder::gauge(
      "headroom_wait_pair_seconds",
      "Time that a pod waited for a resource that another pod had meanwhile: the longest, of the "
      "last minutes. An empty holder: outside pods.");
  add_pairs("cpu", table.cpu_pairs, pods, family);
  add_pairs("memory", table.memory_pairs, pods, family);
  family.append_to(families);
}

}  // namespace headroom::report
