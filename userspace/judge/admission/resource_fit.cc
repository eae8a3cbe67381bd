// SPDX-License-Identifier: Apache-2.0
#include "judge/admission/resource_fit.h"

#include <limits>

namespace headroom {
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
