// SPDX-License-Identifier: Apache-2.0
#include "judge/cpuset/hints/hint_merge.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace headroom {
namespace {

constexpr std::array<std::string_view, 4> kPolicies{"none", "best-effort", "restricted",
                                                    "single-numa-node"};

using Lists = std::vector<HintList>;  // one of each resource

Lists lists_of(std::span<const ProviderHints> providers) {
  const HintList does_not_care{{std::nullopt, true}};
  const HintList cannot{{std::nullopt, false}};
  Lists lists;
  for (const ProviderHints& provider : providers) {
    if (provider.empty()) lists.push_back(does_not_care);
    for (const auto& [resource, hints] : provider)
      lists.push_back(!hints ? does_not_care : hints->empty() ? cannot : *hints);
  }
  return lists;
}

void keep_single_nodes(Lists& lists) {
  for (HintList& list : lists)
    std::erase_if(list, [](const NumaHint& hint) {
      return !hint.preferred || (hint.nodes && hint.nodes->count() != 1);
    });
}

// --- which of two sets is better -------------------------------------------------------------

// Narrower; then, where asked for, closer together; then the lower bits.
class HintOrder {
 public:
  HintOrder(const NumaMap& numa, bool prefer_closest) : numa_(numa), closest_(prefer_closest) {}

  bool operator()(NodeSet a, NodeSet b) const {
    if (a.count() != b.count()) return a.count() < b.count();
    if (closest_) {
      const int distance_a = distance_within(a);
      const int distance_b = distance_within(b);
      if (distance_a != distance_b) return distance_a < distance_b;
    }
    return a < b;
  }

 private:
  // A sum is as good as the kubelet's average: the counts are equal.
  int distance_within(NodeSet nodes) const {
    int sum = 0;
    for (const int from : nodes.ids())
      for (const int to : nodes.ids())
        sum += numa_.distance(from, to);
    return sum;
  }

  const NumaMap& numa_;
  bool closest_;
};

// Not preferred by all: as wide as the pickiest resource needs is best, then less but wide, then
// more but narrow.
class UnpreferredHintOrder {
 public:
  UnpreferredHintOrder(HintOrder hint_order, int wanted)
      : hint_order_(hint_order), wanted_(wanted) {}

  bool operator()(NodeSet a, NodeSet b) const {
    const auto [rank_a, rank_b] = std::pair{rank(a), rank(b)};
    if (rank_a != rank_b) return rank_a < rank_b;
    if (a.count() < wanted_ && a.count() != b.count()) return a.count() > b.count();
    return hint_order_(a, b);
  }

 private:
  int rank(NodeSet nodes) const {
    return nodes.count() == wanted_ ? 0 : nodes.count() < wanted_ ? 1 : 2;
  }

  HintOrder hint_order_;
  int wanted_;
};

// --- all combinations, set by set ------------------------------------------------------------

using Sets = std::vector<NodeSet>;

void make_distinct(Sets& sets) {
  std::ranges::sort(sets);
  sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
}

// What one resource prefers.
struct Preferred {
  Sets sets;
  bool any = false;  // and it does not care: it agrees to every set
};

Preferred preferred_in(const HintList& list) {
  Preferred preferred;
  for (const NumaHint& hint : list) {
    if (!hint.preferred) continue;
    if (hint.nodes) preferred.sets.push_back(*hint.nodes);
    preferred.any = preferred.any || !hint.nodes;
  }
  make_distinct(preferred.sets);
  return preferred;
}

// Sets that every resource prefers.
Sets preferred_intersection(const Lists& lists, NodeSet all) {
  Sets preferred_by_any{all};  // by those that accept every set
  std::optional<Sets> needed;  // by all of those that do not
  for (const HintList& list : lists) {
    const Preferred preferred = preferred_in(list);
    if (preferred.any) {
      preferred_by_any.insert(preferred_by_any.end(), preferred.sets.begin(), preferred.sets.end());
    } else if (!needed) {
      needed = preferred.sets;
    } else {
      std::erase_if(*needed,
                    [&](NodeSet set) { return !std::ranges::binary_search(preferred.sets, set); });
    }
  }
  return needed ? *needed : preferred_by_any;
}

void keep_narrowest(Sets& sets) {
  std::ranges::stable_sort(sets, {}, &NodeSet::count);
  sets.resize(std::min(sets.size(), kMaxMergedSets));
}

// The intersections of one set of each resource.
Sets intersections(const Lists& lists, NodeSet all) {
  Sets reached{all};
  for (const HintList& list : lists) {
    Sets sets;
    for (const NumaHint& hint : list)
      sets.push_back(hint.nodes ? *hint.nodes & all : all);
    make_distinct(sets);
    if (std::min(sets.size(), reached.size()) > kMaxMergedSets) {
      keep_narrowest(sets);
      keep_narrowest(reached);
    }
    Sets next;
    for (const NodeSet a : reached)
      for (const NodeSet b : sets)
        if (!(a & b).empty()) next.push_back(a & b);
    make_distinct(next);
    reached = std::move(next);
  }
  return reached;
}

// The most nodes that any resource needs at least; those that name no set need none.
int min_preferred_count(const Lists& lists) {
  int most = 0;
  for (const HintList& list : lists) {
    std::optional<int> narrowest;
    for (const NumaHint& hint : list)
      if (hint.nodes && (!narrowest || hint.nodes->count() < *narrowest))
        narrowest = hint.nodes->count();
    if (narrowest) most = std::max(most, *narrowest);
  }
  return most;
}

NumaHint best_of(const Lists& lists, NodeSet all, HintOrder hint_order) {
  Sets preferred = preferred_intersection(lists, all);
  for (NodeSet& set : preferred)
    set = set & all;
  std::erase_if(preferred, [](NodeSet set) { return set.empty(); });
  if (!preferred.empty()) return {*std::ranges::min_element(preferred, hint_order), true};
  const Sets sets = intersections(lists, all);
  if (sets.empty()) return {all, false};
  return {
      *std::ranges::min_element(sets, UnpreferredHintOrder(hint_order, min_preferred_count(lists))),
      false};
}

}  // namespace

std::string_view name(TopologyPolicy policy) {
  return kPolicies[static_cast<std::size_t>(policy)];
}

PodLevelMode TopologyRules::pod_level_mode() const {
  if (!pod_level_managers) return PodLevelMode::kOff;
  const bool whole = scope == TopologyScope::kPod && policy != TopologyPolicy::kNone;
  return whole ? PodLevelMode::kPod : PodLevelMode::kContainer;
}

MergedHint merge_hints(const TopologyRules& rules, const NumaMap& numa,
                       std::span<const ProviderHints> providers) {
  if (rules.policy == TopologyPolicy::kNone) return {};
  const bool single = rules.policy == TopologyPolicy::kSingleNumaNode;
  Lists lists = lists_of(providers);
  if (single) keep_single_nodes(lists);
  NumaHint best = best_of(lists, numa.nodes, HintOrder(numa, rules.prefer_closest_numa && !single));
  if (single && best.nodes == numa.nodes) best.nodes.reset();
  return {best, best.preferred || rules.policy == TopologyPolicy::kBestEffort};
}

}  // namespace headroom
