// SPDX-License-Identifier: Apache-2.0
#include "simulate/fleet/node_placement.h"

#include "judge/admission/scheduler.h"

#include <algorithm>
#include <array>

namespace headroom::simulate {
namespace {

// What a container without a request counts with (judge/admission/node_state.cc).
constexpr std::int64_t kScoredMilliCpu = 100, kScoredMemory = std::int64_t{200} << 20;

std::int64_t scored(std::int64_t request, std::int64_t otherwise) {
  return request > 0 ? request : otherwise;
}

std::int64_t memory_at_arrival(const PodPlan& pod) {
  return static_cast<std::int64_t>(first_level(pod));
}

bool fits(const PodPlan& pod, const Placement::NodeSums& node) {
  const bool closed = node.memory_pressure || node.no_batch_memory;
  if (closed && pod.qos == QosClass::kBestEffort) return false;
  if (node.pods >= node.max_pods) return false;
  if (memory_at_arrival(pod) > node.unused_memory) return false;
  if (pod.milli_cpu > 0 && node.used_cpu + pod.milli_cpu > node.milli_cpu) return false;
  return pod.memory_request.count == 0 ||
         node.used_memory + pod.memory_request.count <= node.memory;
}

std::int64_t score(const PodPlan& pod, const Placement::NodeSums& node) {
  const std::array<ResourceUse, 2> with_defaults{
      {{node.scored_cpu, scored(pod.milli_cpu, kScoredMilliCpu), node.milli_cpu},
       {node.scored_memory, scored(pod.memory_request.count, kScoredMemory), node.memory}}};
  const std::array<ResourceUse, 2> requests{
      {{node.used_cpu, pod.milli_cpu, node.milli_cpu},
       {node.used_memory, pod.memory_request.count, node.memory}}};
  Scores scores{.least_allocated = least_allocated(with_defaults)};
  if (pod.milli_cpu > 0 || pod.memory_request.count > 0)
    scores.balanced_allocation = balanced_allocation(requests);
  return scores.total();
}

}  // namespace

// All of up to 100 nodes, then a share that falls from 50 % to 5 %, and never fewer than 100.
std::size_t Placement::nodes_to_find() const {
  constexpr std::size_t kLeast = 100;
  if (nodes_.size() < kLeast) return nodes_.size();
  const std::size_t fall = nodes_.size() / 125;
  const std::size_t percentage = fall >= 45 ? 5 : 50 - fall;
  return std::max(nodes_.size() * percentage / 100, kLeast);
}

// Of equal scores the first by name: by the node's number.
std::optional<std::uint32_t> Placement::place(const PodPlan& pod) {
  std::optional<std::uint32_t> best;
  std::int64_t most = 0;
  std::size_t found = 0, looked_at = 0;
  for (; looked_at < nodes_.size() && found < nodes_to_find(); ++looked_at) {
    const auto index = static_cast<std::uint32_t>((start_ + looked_at) % nodes_.size());
    if (!fits(pod, nodes_[index])) continue;
    ++found;
    const std::int64_t own = score(pod, nodes_[index]);
    if (best && (own < most || (own == most && index > *best))) continue;
    best = index;
    most = own;
  }
  if (!nodes_.empty()) start_ = (start_ + looked_at) % nodes_.size();
  if (!best) return std::nullopt;
  NodeSums& node = nodes_[*best];
  node.used_cpu += pod.milli_cpu;
  node.used_memory += pod.memory_request.count;
  node.scored_cpu += scored(pod.milli_cpu, kScoredMilliCpu);
  node.scored_memory += scored(pod.memory_request.count, kScoredMemory);
  node.unused_memory -= memory_at_arrival(pod);
  ++node.pods;
  return best;
}

void Placement::remove(std::uint32_t index, std::int64_t milli_cpu, Bytes memory_request) {
  NodeSums& node = nodes_[index];
  node.used_cpu -= milli_cpu;
  node.used_memory -= memory_request.count;
  node.scored_cpu -= scored(milli_cpu, kScoredMilliCpu);
  node.scored_memory -= scored(memory_request.count, kScoredMemory);
  --node.pods;
}

}  // namespace headroom::simulate
