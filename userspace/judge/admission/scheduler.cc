// SPDX-License-Identifier: Apache-2.0
#include "judge/admission/scheduler.h"

#include "judge/admission/node_scores.h"
#include "judge/admission/node_state.h"
#include "judge/admission/taints.h"

#include <algorithm>

namespace headroom {
namespace {

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
      candidate.scores = Scores{.least_allocated = least_allocated(pod, node),
                                .balanced_allocation = balanced_allocation(pod, node).value_or(0),
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
