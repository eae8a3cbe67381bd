// SPDX-License-Identifier: Apache-2.0
#include "judge/admission/node_state.h"

#include "judge/admission/taints.h"
#include "judge/resources/pod_resources.h"

#include <limits>
#include <utility>

namespace headroom {

ResourceCounts counts_of(const ResourceList& list) {
  ResourceCounts counts;
  for (const auto& [resource, quantity] : list)
    counts[resource] = resource == "cpu" ? quantity.milli_value() : quantity.value();
  return counts;
}

Quantity quantity_of(std::string_view resource, std::int64_t count) {
  if (resource == "cpu") return Quantity::of_milli(count);
  const bool bytes =
      resource == "memory" || resource == "ephemeral-storage" || resource.starts_with("hugepages-");
  return Quantity::of(count, bytes ? Quantity::Format::kBinarySI : Quantity::Format::kDecimalSI);
}

std::int64_t of(const ResourceCounts& counts, std::string_view resource) {
  const auto entry = counts.find(resource);
  return entry == counts.end() ? 0 : entry->second;
}

void add(ResourceCounts& sum, const ResourceCounts& more) {
  for (const auto& [resource, count] : more) {
    std::int64_t& all = sum[resource];
    if (__builtin_add_overflow(all, count, &all)) all = std::numeric_limits<std::int64_t>::max();
  }
}

bool is_extended(std::string_view resource) {
  const std::size_t slash = resource.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view domain = resource.substr(0, slash);
  return domain != "kubernetes.io" && !domain.ends_with(".kubernetes.io");
}

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

// A pod gets the defaults only for resources that it does not request.
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

namespace {

constexpr auto kMax = std::numeric_limits<std::int64_t>::max();

std::int64_t saturating_sum(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? kMax : sum;
}

// A missing capacity of cpu, memory and the like is unknown, because no node reports zero of them.
// A node without huge pages or an extended resource has none of it.
std::optional<std::int64_t> capacity_of(const NodeState& node, std::string_view resource) {
  const auto entry = node.allocatable.find(resource);
  if (entry != node.allocatable.end()) return entry->second;
  const bool always_there = resource == "cpu" || resource == "memory" ||
                            resource == "ephemeral-storage" || resource == "pods";
  return always_there ? std::nullopt : std::optional<std::int64_t>(0);
}

void check(const NodeState& node, const ResourceCounts& used, std::string_view resource,
           std::int64_t requested, std::vector<Shortage>& found) {
  if (requested <= 0) return;
  const auto capacity = capacity_of(node, resource);
  const std::int64_t taken = of(used, resource);
  if (capacity && saturating_sum(taken, requested) <= *capacity) return;
  found.push_back({std::string(resource), requested, taken, capacity});
}

}  // namespace

std::optional<std::int64_t> Shortage::missing() const {
  if (!capacity) return std::nullopt;
  return saturating_sum(requested, used) - *capacity;
}

std::vector<Shortage> shortages(const PodOnNode& pod, const NodeState& node,
                                UnknownResources unknown_resources) {
  const ResourceCounts used = requested(node, pod.uid);
  std::vector<Shortage> found;
  check(node, used, "pods", 1, found);
  for (const auto& [resource, count] : pod.requests) {
    const bool others = unknown_resources == UnknownResources::kIgnoreUnknown &&
                        is_extended(resource) && !node.allocatable.contains(resource);
    if (!others && resource != "pods") check(node, used, resource, count, found);
  }
  return found;
}

}  // namespace headroom
