// SPDX-License-Identifier: Apache-2.0
#include "judge/admission/node_state.h"

#include "judge/admission/taints.h"
#include "judge/resources/pod_resources.h"
#include "judge/resources/qos.h"

#include <utility>

namespace headroom {
namespace {

// The scheduler's defaults for scoring (pkg/scheduler/util/pod_resources.go, v1.32).
constexpr std::int64_t kScoredMilliCpu = 100;
constexpr std::int64_t kScoredMemory = std::int64_t{200} << 20;

void add_default_requests(std::vector<Container>& containers, bool cpu, bool memory) {
  for (Container& container : containers) {
    if (cpu) container.requests.try_emplace("cpu", Quantity::of_milli(kScoredMilliCpu));
    if (memory) container.requests.try_emplace("memory", Quantity::of(kScoredMemory));
  }
}

// A pod with requests of its own is given the defaults only of what it requests nothing of.
ResourceCounts with_default_requests(Pod pod) {
  bool cpu = true, memory = true;
  if (pod.pod_level && !pod.pod_level->requests.empty()) {
    const ResourceList requests = pod_requests(pod);
    cpu = !requests.contains("cpu");
    memory = !requests.contains("memory");
  }
  add_default_requests(pod.init_containers, cpu, memory);
  add_default_requests(pod.containers, cpu, memory);
  return counts_of(pod_requests(pod));
}

ResourceCounts scored_requests(const Pod& pod) {
  const ResourceCounts all = with_default_requests(pod);
  return {{"cpu", of(all, "cpu")}, {"memory", of(all, "memory")}};
}

}  // namespace

PodOnNode on_node(const Pod& pod) {
  return {.pod_namespace = pod.pod_namespace,
          .name = pod.name,
          .uid = pod.uid,
          .qos = qos_class(pod),
          .priority = pod.priority,
          .critical = is_critical(pod),
          .requests = counts_of(pod_requests(pod)),
          .limits = counts_of(pod_limits(pod)),
          .scored_requests = scored_requests(pod),
          .host_ports = pod.placement.host_ports};
}

ResourceCounts incoming_scored_requests(const Pod& pod) {
  Pod bare = pod;
  bare.pod_level.reset();
  return with_default_requests(std::move(bare));
}

ResourceCounts requested(const NodeState& node, std::string_view excluded_uid) {
  ResourceCounts sum;
  std::int64_t pods = 0;
  for (const PodOnNode& pod : node.pods) {
    if (!excluded_uid.empty() && pod.uid == excluded_uid) continue;
    add(sum, pod.requests);
    ++pods;
  }
  sum["pods"] = pods;
  return sum;
}

ResourceCounts total_limits(const NodeState& node) {
  ResourceCounts sum;
  for (const PodOnNode& pod : node.pods)
    add(sum, pod.limits);
  return sum;
}

std::vector<Taint> all_taints(const NodeState& node) {
  std::vector<Taint> taints = node.taints;
  for (Taint& taint : condition_taints(node.conditions))
    taints.push_back(std::move(taint));
  return taints;
}

}  // namespace headroom
