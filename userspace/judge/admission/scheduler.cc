// SPDX-License-Identifier: Apache-2.0
#include "judge/admission/scheduler.h"

#include "judge/admission/node_state.h"
#include "judge/admission/taints.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

namespace headroom {
namespace {

using Operator = LabelRequirement::Operator;

std::optional<std::int64_t> whole(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool compares(const LabelRequirement& requirement, const std::string& label) {
  const auto have = whole(label);
  const auto bound = requirement.values.empty() ? std::nullopt : whole(requirement.values[0]);
  if (!have || !bound) return false;
  return requirement.op == Operator::kGt ? *have > *bound : *have < *bound;
}

// A missing label matches neither In nor NotIn with values.
bool holds(const LabelRequirement& requirement, const std::string* label) {
  const auto& values = requirement.values;
  const bool listed = label && std::find(values.begin(), values.end(), *label) != values.end();
  switch (requirement.op) {
    case Operator::kIn:
      return listed;
    case Operator::kNotIn:
      return !listed;
    case Operator::kExists:
      return label != nullptr;
    case Operator::kDoesNotExist:
      return label == nullptr;
    case Operator::kGt:
    case Operator::kLt:
      return label && compares(requirement, *label);
  }
  return false;
}

bool is_wildcard_address(const std::string& address) {
  return address.empty() || address == "0.0.0.0" || address == "::";
}

}  // namespace

bool matches(const NodeTerm& term, const NodeState& node) {
  if (term.labels.empty() && term.fields.empty()) return false;
  const auto label_holds = [&](const LabelRequirement& requirement) {
    const auto label = node.labels.find(requirement.key);
    return holds(requirement, label == node.labels.end() ? nullptr : &label->second);
  };
  const auto field_holds = [&](const LabelRequirement& requirement) {
    return requirement.key == "metadata.name" && holds(requirement, &node.name);
  };
  return std::all_of(term.labels.begin(), term.labels.end(), label_holds) &&
         std::all_of(term.fields.begin(), term.fields.end(), field_holds);
}

bool selects(const Placement& placement, const NodeState& node) {
  for (const auto& [key, value] : placement.node_selector) {
    const auto label = node.labels.find(key);
    if (label == node.labels.end() || label->second != value) return false;
  }
  const auto& terms = placement.required;
  return !terms || std::any_of(terms->begin(), terms->end(),
                               [&](const NodeTerm& term) { return matches(term, node); });
}

bool conflict(const HostPort& a, const HostPort& b) {
  return a.port == b.port && a.protocol == b.protocol &&
         (a.address == b.address || is_wildcard_address(a.address) ||
          is_wildcard_address(b.address));
}

bool ports_free(const PodOnNode& pod, const NodeState& node) {
  for (const PodOnNode& other : node.pods) {
    if (!pod.uid.empty() && other.uid == pod.uid) continue;
    for (const HostPort& taken : other.host_ports)
      for (const HostPort& wanted : pod.host_ports)
        if (conflict(taken, wanted)) return false;
  }
  return true;
}

namespace {

bool has_default_request(std::string_view resource) {
  return resource == "cpu" || resource == "memory";
}

// Resources with a field of their own in the scheduler; all others count only for a pod that
// requests them.
bool is_basic(std::string_view resource) {
  return has_default_request(resource) || resource == "ephemeral-storage";
}

// The requests of the pods on the node; `scored`: with defaults for containers that request no CPU
// or memory.
std::int64_t requested_on(const NodeState& node, std::string_view excluded_uid,
                          std::string_view resource, bool scored) {
  std::int64_t sum = 0;
  for (const PodOnNode& pod : node.pods) {
    if (!excluded_uid.empty() && pod.uid == excluded_uid) continue;
    const bool use_scored = scored && has_default_request(resource);
    const ResourceCounts& counts = use_scored ? pod.scored_requests : pod.requests;
    if (__builtin_add_overflow(sum, of(counts, resource), &sum))
      return std::numeric_limits<std::int64_t>::max();
  }
  return sum;
}

// Absent: the resource does not count for this pod on this node.
std::optional<ResourceUse> resource_use(const Pod& pod, const ResourceCounts& wanted,
                                        const NodeState& node, std::string_view resource,
                                        bool scored) {
  ResourceUse use{.requested = 0,
                  .wanted = of(wanted, resource),
                  .allocatable = of(node.allocatable, resource)};
  if (use.allocatable <= 0 || (use.wanted == 0 && !is_basic(resource))) return std::nullopt;
  use.requested = requested_on(node, pod.uid, resource, scored);
  return use;
}

// (allocatable − requested) × 100 / allocatable, which does not fit 64 bits for large disks.
std::int64_t free_percentage(const ResourceUse& use) {
  const auto sum = use.together();
  if (!sum || *sum > use.allocatable) return 0;
  const std::int64_t left = use.allocatable - *sum;
  if (left <= std::numeric_limits<std::int64_t>::max() / kMaxNodeScore)
    return left * kMaxNodeScore / use.allocatable;
  __extension__ using Wide = __int128;
  return static_cast<std::int64_t>(Wide{left} * kMaxNodeScore / use.allocatable);
}

double share(std::int64_t requested, std::int64_t allocatable) {
  return std::min(static_cast<double>(requested) / static_cast<double>(allocatable), 1.0);
}

// The standard deviation of the shares, as a score: 100 where all are equal. `with`: the incoming
// pod counts.
std::int64_t balance(std::span<const ResourceUse> uses, bool with) {
  const auto share_of = [&](const ResourceUse& use) {
    return share(with ? use.together().value_or(use.allocatable) : use.requested, use.allocatable);
  };
  double deviation = 0;
  if (uses.size() == 2) {
    deviation = std::abs((share_of(uses[0]) - share_of(uses[1])) / 2);
  } else if (uses.size() > 2) {
    const auto count = static_cast<double>(uses.size());
    double mean = 0, sum = 0;
    for (const ResourceUse& use : uses)
      mean += share_of(use) / count;
    for (const ResourceUse& use : uses)
      sum += (share_of(use) - mean) * (share_of(use) - mean);
    deviation = std::sqrt(sum / count);
  }
  return static_cast<std::int64_t>((1 - deviation) * static_cast<double>(kMaxNodeScore));
}

}  // namespace

std::int64_t least_allocated(const Pod& pod, const NodeState& node,
                             std::span<const ScoredResource> resources) {
  const ResourceCounts wanted = incoming_scored_requests(pod);
  std::int64_t sum = 0, weights = 0;
  for (const ScoredResource& resource : resources) {
    const auto use = resource_use(pod, wanted, node, resource.name, true);
    if (!use) continue;
    sum += free_percentage(*use) * resource.weight;
    weights += resource.weight;
  }
  return weights == 0 ? 0 : sum / weights;
}

std::optional<std::int64_t> balanced_allocation(const Pod& pod, const NodeState& node,
                                                std::span<const ScoredResource> resources) {
  const ResourceCounts wanted = on_node(pod).requests;
  const bool requests_none =
      std::all_of(resources.begin(), resources.end(),
                  [&](const ScoredResource& resource) { return of(wanted, resource.name) == 0; });
  if (requests_none) return std::nullopt;
  std::vector<ResourceUse> uses;
  for (const ScoredResource& resource : resources)
    if (const auto use = resource_use(pod, wanted, node, resource.name, false))
      uses.push_back(*use);
  return balanced_allocation(uses);
}

std::int64_t least_allocated(std::span<const ResourceUse> uses) {
  std::int64_t sum = 0;
  for (const ResourceUse& use : uses)
    sum += free_percentage(use);
  return uses.empty() ? 0 : sum / static_cast<std::int64_t>(uses.size());
}

std::int64_t balanced_allocation(std::span<const ResourceUse> uses) {
  constexpr std::int64_t kHalf = kMaxNodeScore / 2;
  return kHalf + (kHalf + balance(uses, true) - balance(uses, false)) / 2;
}

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

// Scales the scores of the feasible nodes: the greatest becomes 100; with `reverse` the greatest
// becomes 0, and 0 becomes 100.
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
