// SPDX-License-Identifier: Apache-2.0
#include "judge/admission/scheduler.h"

#include "judge/admission/node_match.h"
#include "judge/admission/resource_fit.h"
#include "judge/admission/taints.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace headroom {
namespace {

constexpr std::array<std::string_view, 2> kScored{"cpu", "memory"};

// What a resource would come to with the pod on the node, and what there is.
struct ResourceUse {
  std::int64_t requested = 0;
  std::int64_t allocatable = 0;
};

ResourceUse resource_use(const PodOnNode& wanted, const NodeState& node,
                         ResourceCounts PodOnNode::*counts, std::string_view resource) {
  ResourceUse resource_use{of(wanted.*counts, resource), of(node.allocatable, resource)};
  for (const PodOnNode& pod : node.pods) {
    if (!wanted.uid.empty() && pod.uid == wanted.uid) continue;
    if (__builtin_add_overflow(resource_use.requested, of(pod.*counts, resource),
                               &resource_use.requested))
      return {resource_use.allocatable, resource_use.allocatable};  // full, whatever it is exactly
  }
  return resource_use;
}

// (allocatable − requested) × 100 / allocatable, which does not fit 64 bits for large disks.
std::int64_t free_percentage(const ResourceUse& resource_use) {
  if (resource_use.requested > resource_use.allocatable) return 0;
  __extension__ using Wide = __int128;
  return static_cast<std::int64_t>(Wide{resource_use.allocatable - resource_use.requested} *
                                   Scores::kMaxScore / resource_use.allocatable);
}

std::int64_t least_allocated(const PodOnNode& wanted, const NodeState& node) {
  std::int64_t sum = 0, weights = 0;
  for (const std::string_view resource : kScored) {
    const ResourceUse full = resource_use(wanted, node, &PodOnNode::scored_requests, resource);
    if (full.allocatable <= 0) continue;
    sum += free_percentage(full);
    ++weights;
  }
  return weights == 0 ? 0 : sum / weights;
}

std::int64_t balanced_allocation(const PodOnNode& wanted, const NodeState& node) {
  std::vector<double> shares;
  for (const std::string_view resource : kScored) {
    const ResourceUse full = resource_use(wanted, node, &PodOnNode::requests, resource);
    if (full.allocatable <= 0) continue;
    const double share =
        static_cast<double>(full.requested) / static_cast<double>(full.allocatable);
    shares.push_back(std::min(share, 1.0));
  }
  // Of two values the standard deviation is half their distance; one alone is in balance.
  const double deviation = shares.size() == 2 ? std::abs((shares[0] - shares[1]) / 2) : 0;
  return static_cast<std::int64_t>((1 - deviation) * static_cast<double>(Scores::kMaxScore));
}

std::int64_t count_untolerated(const Pod& pod, const NodeState& node) {
  return std::count_if(node.taints.begin(), node.taints.end(), [&](const Taint& taint) {
    return taint.effect == TaintEffect::kPreferNoSchedule && !tolerates(pod, taint);
  });
}

std::int64_t preference(const Pod& pod, const NodeState& node) {
  std::int64_t sum = 0;
  for (const PreferredTerm& preferred : pod.placement.preferred)
    if (matches(preferred.term, node)) sum += preferred.weight;
  return sum;
}

// Over the feasible nodes: the greatest becomes 100, or with `reverse` 0, and nothing 100.
void normalize(std::vector<NodeCandidate>& nodes, std::int64_t Scores::*score, bool reverse) {
  std::int64_t greatest = 0;
  for (const NodeCandidate& node : nodes)
    if (node.scores) greatest = std::max(greatest, (*node.scores).*score);
  for (NodeCandidate& node : nodes) {
    if (!node.scores) continue;
    std::int64_t& own = (*node.scores).*score;
    if (greatest > 0) own = Scores::kMaxScore * own / greatest;
    if (reverse) own = Scores::kMaxScore - own;
  }
}

std::string insufficient(const Shortage& shortage) {
  if (shortage.resource == "pods" && shortage.capacity) return "Too many pods";
  return (shortage.capacity ? "Insufficient " : "Unknown allocatable ") + shortage.resource;
}

bool better(const Scores& a, const std::string& a_name, const Scores& b,
            const std::string& b_name) {
  return a.total() != b.total() ? a.total() > b.total() : a_name < b_name;
}

}  // namespace

std::vector<std::string> filter(const Pod& pod, const PodOnNode& wanted, const NodeState& node) {
  std::vector<std::string> reasons;
  static const Taint kCordon{"node.kubernetes.io/unschedulable"};
  if (node.unschedulable && !tolerates(pod, kCordon))
    reasons.emplace_back("node(s) were unschedulable");
  if (!pod.placement.node_name.empty() && pod.placement.node_name != node.name)
    reasons.emplace_back("node(s) didn't match the requested node name");
  for (const Taint& taint : all_taints(node))
    if (taint.effect != TaintEffect::kPreferNoSchedule && !tolerates(pod, taint))
      reasons.push_back("node(s) had untolerated taint {" + taint.key + ": " + taint.value + "}");
  if (!selects(pod.placement, node))
    reasons.emplace_back("node(s) didn't match Pod's node affinity/selector");
  if (!ports_free(wanted, node))
    reasons.emplace_back("node(s) didn't have free ports for the requested pod ports");
  for (const Shortage& shortage : shortages(wanted, node, UnknownResources::kUnknownIsShort))
    reasons.push_back(insufficient(shortage));
  return reasons;
}

PlacementResult select_node(const Pod& pod, std::span<const NodeState> nodes) {
  const PodOnNode wanted = on_node(pod);
  PlacementResult selection;
  for (const NodeState& node : nodes) {
    NodeCandidate& candidate = selection.nodes.emplace_back();
    candidate.reasons = filter(pod, wanted, node);
    if (candidate.reasons.empty())
      candidate.scores = Scores{.least_allocated = least_allocated(wanted, node),
                                .balanced_allocation = balanced_allocation(wanted, node),
                                .taint_toleration = count_untolerated(pod, node),
                                .node_affinity = preference(pod, node)};
  }
  normalize(selection.nodes, &Scores::taint_toleration, true);
  normalize(selection.nodes, &Scores::node_affinity, false);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto& scores = selection.nodes[i].scores;
    if (!scores) continue;
    const auto best = selection.chosen;
    if (!best || better(*scores, nodes[i].name, *selection.nodes[*best].scores, nodes[*best].name))
      selection.chosen = i;
  }
  return selection;
}

}  // namespace headroom
