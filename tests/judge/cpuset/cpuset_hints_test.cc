// SPDX-License-Identifier: Apache-2.0
// Hints and their merging, against the definitions written out; and their bounds on many nodes.
#include "judge/cpuset/cpuset_machine.h"
#include "judge/cpuset/hints/cpu_hints.h"
#include "judge/cpuset/hints/hint_merge.h"

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace headroom {
namespace {

NodeSet nodes(std::initializer_list<int> ids) {
  NodeSet set;
  for (const int id : ids)
    set = set | NodeSet::of(id);
  return set;
}

TEST(Hints, AreAllSufficientSubsets) {
  std::mt19937 random(21);
  const auto below = [&](int n) { return std::uniform_int_distribution(0, n - 1)(random); };
  for (int round = 0; round < 500; ++round) {
    const Topology topology = odd_machine(random);
    const CpuSet reusable = some_of(topology.cpus(), 10 * below(3), random);
    const CpuSet available = some_of(topology.cpus() - reusable, 20 + below(81), random);
    const int count = 1 + below(topology.cpus().size());
    const HintList hints =
        cpu_hints(topology, {.count = count, .available = available, .reusable = reusable});

    const auto& all = topology.numa().nodes;
    std::vector<NodeSet> expected;
    int narrowest = all.count();
    for (NodeSet set{1}; set <= all; ++set.bits) {
      if (!all.contains(set)) continue;
      const CpuSet within = topology.cpus_of(set);
      if (within.size() >= count) narrowest = std::min(narrowest, set.count());
      if (reusable.subset_of(within) && within.overlap(available | reusable) >= count)
        expected.push_back(set);
    }
    ASSERT_EQ(hints.size(), expected.size());
    int width = 0;
    for (const NumaHint& hint : hints) {
      EXPECT_EQ(std::ranges::count(expected, *hint.nodes), 1);
      EXPECT_EQ(hint.preferred, hint.nodes->count() == narrowest);
      EXPECT_GE(hint.nodes->count(), width) << "narrow ones first";
      width = hint.nodes->count();
    }
  }
}

TEST(Hints, AlignedBySocketPreferTheFewestSockets) {
  const Topology topology = machine({.sockets = 2, .nodes_per_socket = 2, .cores_per_node = 4});
  const HintRequest request{.count = 4, .available = topology.cpus(), .align_by_socket = true};
  for (const NumaHint& hint : cpu_hints(topology, request)) {
    const bool one_socket =
        nodes({0, 1}).contains(*hint.nodes) || nodes({2, 3}).contains(*hint.nodes);
    EXPECT_EQ(hint.preferred, one_socket) << hint.nodes->bits;
  }
}

TEST(Hints, AreBoundedOnManyNodes) {
  const Topology topology =
      machine({.sockets = 2, .nodes_per_socket = 16, .cores_per_node = 8, .threads = 2});
  ASSERT_EQ(topology.cpus().size(), 512);
  for (const int count : {1, 16, 17, 100, 256, 400, 511, 512}) {
    WorkCounter work;
    const HintList hints =
        cpu_hints(topology, {.count = count, .available = topology.cpus()}, &work);
    EXPECT_LE(work.steps, static_cast<std::uint64_t>(kMaxHintSubsets)) << "of 2^32";
    EXPECT_TRUE(std::ranges::any_of(hints, &NumaHint::preferred)) << count;
  }
  // Free CPUs only where a walk in order would come last, and on more nodes than it gets to.
  CpuSet available;
  for (const int node : {16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31})
    available |= topology.cpus_of(NodeSet::of(node));
  const HintList hints = cpu_hints(topology, {.count = 256, .available = available});
  EXPECT_EQ(std::ranges::count(hints, NumaHint{NodeSet{0xffff0000}, true}), 1);
}

// --- merging ---------------------------------------------------------------------------------

// kubelet: cm/topologymanager as it is written: every permutation in turn against the best so far.
class Permutations {
 public:
  Permutations(const TopologyRules& rules, const NumaMap& numa, std::vector<HintList> lists)
      : rules_(rules), numa_(numa), lists_(std::move(lists)) {
    for (const HintList& list : lists_) {
      int narrowest = 0;
      for (const NumaHint& hint : list)
        if (hint.nodes && (narrowest == 0 || hint.nodes->count() < narrowest))
          narrowest = hint.nodes->count();
      wanted_ = std::max(wanted_, narrowest);
    }
  }

  NumaHint best() {
    walk(0, {numa_.nodes, true}, std::nullopt);
    return best_ ? *best_ : NumaHint{numa_.nodes, false};
  }

 private:
  void walk(std::size_t i, NumaHint merged, std::optional<NodeSet> first) {
    if (i == lists_.size()) return offer(merged);
    for (const NumaHint& hint : lists_[i]) {
      const bool equal = !hint.nodes || !first || *first == *hint.nodes;
      walk(i + 1,
           {hint.nodes ? *merged.nodes & *hint.nodes : *merged.nodes,
            merged.preferred && hint.preferred && equal},
           first ? first : hint.nodes);
    }
  }

  void offer(const NumaHint& candidate) {
    if (candidate.nodes->empty()) return;
    if (!best_ || replaces(candidate)) best_ = candidate;
  }

  bool replaces(const NumaHint& candidate) const {
    if (candidate.preferred != best_->preferred) return candidate.preferred;
    const int has = best_->nodes->count();
    const int offered = candidate.nodes->count();
    if (candidate.preferred || has > wanted_) return better(*candidate.nodes);
    if (has == wanted_) return offered == wanted_ && better(*candidate.nodes);
    if (offered > wanted_) return false;
    if (offered == wanted_) return true;
    return offered != has ? offered > has : better(*candidate.nodes);
  }

  double distance(NodeSet set) const {
    double sum = 0;
    for (const int from : set.ids())
      for (const int to : set.ids())
        sum += numa_.distance(from, to);
    return sum / (set.count() * set.count());
  }

  bool better(NodeSet set) const {
    if (set.count() != best_->nodes->count()) return set.count() < best_->nodes->count();
    if (rules_.prefer_closest_numa && distance(set) != distance(*best_->nodes))
      return distance(set) < distance(*best_->nodes);
    return set < *best_->nodes;
  }

  TopologyRules rules_;
  const NumaMap& numa_;
  std::vector<HintList> lists_;
  int wanted_ = 0;
  std::optional<NumaHint> best_;
};

TEST(Merge, MatchesTheExhaustiveSearch) {
  std::mt19937 random(22);
  const auto below = [&](int n) { return std::uniform_int_distribution(0, n - 1)(random); };
  int preferred = 0;
  for (int round = 0; round < 5000; ++round) {
    NumaMap numa{.nodes = NodeSet{(std::uint64_t{1} << (1 + below(4))) - 1}};
    numa.distances = {{10, 12, 21, 21}, {12, 10, 21, 21}, {21, 21, 10, 12}, {21, 21, 12, 10}};
    std::vector<HintList> lists(static_cast<std::size_t>(1 + below(3)));
    for (HintList& list : lists)
      for (int i = 1 + below(5); i > 0; --i) {
        const NodeSet set{1 + static_cast<std::uint64_t>(below(static_cast<int>(numa.nodes.bits)))};
        list.push_back({below(6) ? std::optional(set) : std::nullopt, below(2) == 1});
      }
    const TopologyRules rules{.policy = TopologyPolicy::kRestricted,
                              .prefer_closest_numa = below(2) == 1};
    std::vector<ProviderHints> providers;
    for (const HintList& list : lists)
      providers.push_back({{"resource", list}});
    const MergedHint merged = merge_hints(rules, numa, providers);
    EXPECT_EQ(merged.best, Permutations(rules, numa, lists).best());
    EXPECT_EQ(merged.admit, merged.best.preferred);
    preferred += merged.best.preferred;
  }
  EXPECT_GT(preferred, 500);
  EXPECT_LT(preferred, 4500);
}

TEST(Merge, IsBoundedForManyLongLists) {
  // 255 hints each of ten resources: 10^24 permutations.
  const Topology topology = machine({.sockets = 2, .nodes_per_socket = 4, .cores_per_node = 4});
  const HintList hints = cpu_hints(topology, {.count = 3, .available = topology.cpus()});
  ASSERT_EQ(hints.size(), 255U);
  ProviderHints provider;
  for (int i = 0; i < 10; ++i)
    provider["resource" + std::to_string(i)] = hints;
  const MergedHint merged =
      merge_hints({.policy = TopologyPolicy::kSingleNumaNode}, topology.numa(), {&provider, 1});
  EXPECT_EQ(merged.best, (NumaHint{NodeSet::of(0), true}));

  for (auto& [resource, list] : provider)
    for (NumaHint& hint : *list)
      hint.preferred = false;
  EXPECT_EQ(
      merge_hints({.policy = TopologyPolicy::kBestEffort}, topology.numa(), {&provider, 1}).best,
      (NumaHint{NodeSet::of(0), false}));
}

TEST(Merge, WithoutAPolicyAllAreAdmitted) {
  const ProviderHints nowhere{{"cpu", HintList{}}};
  const MergedHint merged = merge_hints({}, {.nodes = NodeSet{3}}, {&nowhere, 1});
  EXPECT_TRUE(merged.admit);
  EXPECT_FALSE(merged.best.nodes);
}

TEST(Merge, NamesMatchTheKubelet) {
  EXPECT_EQ(name(TopologyPolicy::kNone), "none");
  EXPECT_EQ(name(TopologyPolicy::kBestEffort), "best-effort");
  EXPECT_EQ(name(TopologyPolicy::kRestricted), "restricted");
  EXPECT_EQ(name(TopologyPolicy::kSingleNumaNode), "single-numa-node");
}

}  // namespace
}  // namespace headroom
