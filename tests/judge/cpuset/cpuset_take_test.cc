// SPDX-License-Identifier: Apache-2.0
// Taking CPUs: what must hold of every answer on every machine, and how much work it may cost.
#include "judge/cpuset/allocation/distribution.h"
#include "judge/cpuset/allocation/take_cpus.h"
#include "judge/cpuset/cpuset_machine.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom {
namespace {

constexpr CpuOrder kOrders[] = {CpuOrder::kPacked, CpuOrder::kSpread};

TEST(Take, TakesExactlyTheRequestedNumberOfAvailableCpus) {
  std::mt19937 random(11);
  const auto below = [&](int n) { return std::uniform_int_distribution(0, n - 1)(random); };
  for (int round = 0; round < 3000; ++round) {
    const Topology topology = odd_machine(random);
    const CpuSet available = some_of(topology.cpus(), 20 + below(81), random);
    const int count = below(topology.cpus().size() + 2);
    const TakeRules rules{.order = kOrders[below(2)],
                          .prefer_uncore = below(2) == 1,
                          .across_numa = below(2) == 1,
                          .group = 1 + below(3)};
    const TakeResult taken = take(topology, available, count, rules);
    if (count > available.size()) {
      ASSERT_FALSE(taken);
      EXPECT_EQ(taken.error(), (NotEnoughCpus{count, available.size()}));
      continue;
    }
    ASSERT_TRUE(taken) << taken.error().message();
    EXPECT_EQ(taken->size(), count);
    EXPECT_TRUE(taken->subset_of(available)) << taken->format() << " of " << available.format();
    EXPECT_EQ(taken, take(topology, available, count, rules)) << "the same answer twice";
  }
}

TEST(Take, PackedCutsNoMoreThanOneFreeCore) {
  std::mt19937 random(12);
  const auto below = [&](int n) { return std::uniform_int_distribution(0, n - 1)(random); };
  for (int round = 0; round < 2000; ++round) {
    const Topology topology = odd_machine(random);
    const CpuSet available = some_of(topology.cpus(), 20 + below(81), random);
    if (available.empty()) continue;
    const int count = 1 + below(available.size());
    const TakeResult taken = take(topology, available, count, {});
    ASSERT_TRUE(taken);
    int cut = 0;
    for (const CpuGroup& core : topology.groups(Level::kCore))
      if (core.cpus.subset_of(available) && core.cpus.intersects(*taken) &&
          !core.cpus.subset_of(*taken))
        ++cut;
    EXPECT_LE(cut, 1) << taken->format() << " of " << available.format();
  }
}

TEST(Take, OnHybridMachinesOnlyAvailableCpusAreTaken) {
  // P-cores 0-1 … 10-11, E-cores 12-19: the average core has 20/14 = 1 CPU, and upstream takes
  // half-free P-cores for free ones (kubernetes/kubernetes 140495).
  std::vector<CpuLocation> rows;
  for (Cpu cpu = 0; cpu < 12; ++cpu)
    rows.push_back({cpu, cpu / 2 * 2, 0, 0, 0});
  for (Cpu cpu = 12; cpu < 20; ++cpu)
    rows.push_back({cpu, cpu, 0, 0, 0});
  const Topology topology = Topology::of(rows).value();
  const CpuSet available = topology.cpus() - CpuSet{1, 3};
  EXPECT_EQ(take(topology, available, 2, {})->format(), "12-13") << "whole free cores first";
  EXPECT_EQ(take(topology, available, 17, {})->format(), "0,4-19");
}

// --- the choice of nodes, against trying every one ---------------------------------------------

double deviation(const std::vector<int>& left) {
  double sum = 0;
  for (const int each : left)
    sum += each;
  const double mean = sum / static_cast<double>(left.size());
  double squares = 0;
  for (const int each : left)
    squares += (each - mean) * (each - mean);
  return std::round(std::sqrt(squares / static_cast<double>(left.size())) * 1000) / 1000;
}

std::vector<std::vector<std::size_t>> subsets(const std::vector<std::size_t>& of,
                                              std::size_t size) {
  std::vector<std::vector<std::size_t>> all;
  std::vector<bool> picked(of.size());
  std::fill(picked.begin(), picked.begin() + static_cast<std::ptrdiff_t>(size), true);
  do {
    std::vector<std::size_t> subset;
    for (std::size_t i = 0; i < of.size(); ++i)
      if (picked[i]) subset.push_back(of[i]);
    all.push_back(subset);
  } while (std::prev_permutation(picked.begin(), picked.end()));
  return all;
}

// What is left when the remainder goes to these in turn; absent where they have too little.
std::optional<std::vector<int>> handed_out(std::vector<int> left,
                                           const std::vector<std::size_t>& to, int rest,
                                           int group) {
  while (rest > 0) {
    const int before = rest;
    for (const std::size_t node : to)
      if (rest > 0 && left[node] >= group) {
        left[node] -= group;
        rest -= group;
      }
    if (rest == before) return std::nullopt;
  }
  return left;
}

struct Plan {
  std::vector<std::size_t> nodes;
  std::vector<std::size_t> remainder;
  double balance = std::numeric_limits<double>::max();
};

// kubelet: cm/cpumanager/cpu_assignment.go as it is written, without the slices that alias.
Plan by_trying(const std::vector<int>& left, const std::vector<std::size_t>& nodes, int count,
               int group) {
  const auto k = static_cast<int>(nodes.size());
  const int each = count / k / group * group;
  Plan plan{.nodes = nodes, .remainder = {}};
  int groups_there = 0;
  for (const std::size_t node : nodes) {
    if (left[node] < each) return plan;
    groups_there += left[node] / group;
  }
  if (groups_there * group < count) return plan;
  std::vector<int> after = left;
  for (const std::size_t node : nodes)
    after[node] -= each;
  const int rest = count - each * k;
  if (rest == 0) plan.balance = deviation(after);
  if (rest == 0) return plan;
  std::vector<std::size_t> candidates;
  for (const std::size_t node : nodes)
    if (after[node] >= group) candidates.push_back(node);
  for (std::size_t j = candidates.size(); j > 0; --j)
    for (const auto& to : subsets(candidates, j)) {
      const auto final = handed_out(after, to, rest, group);
      if (!final || deviation(*final) >= plan.balance) continue;
      plan.balance = deviation(*final);
      plan.remainder = to;
    }
  return plan;
}

std::optional<Plan> by_trying_all(const std::vector<int>& left, int count, int group, int fewest) {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < left.size(); ++i)
    all.push_back(i);
  const int most = std::min(count / group, static_cast<int>(left.size()));
  for (int k = fewest; k <= most; ++k) {
    Plan best;
    for (const auto& nodes : subsets(all, static_cast<std::size_t>(k))) {
      const Plan plan = by_trying(left, nodes, count, group);
      if (plan.balance < best.balance) best = plan;
    }
    if (!best.nodes.empty()) return best;
  }
  return std::nullopt;
}

// Whether there is a plan at all.
bool expect_as_by_trying(const std::vector<int>& left, int count, int group, int fewest) {
  WorkCounter work;
  const auto plan =
      distribute({.left = left, .count = count, .group = group, .fewest_nodes = fewest}, work);
  const auto expected = by_trying_all(left, count, group, fewest);
  SCOPED_TRACE(testing::PrintToString(left) + " count " + std::to_string(count) + " group " +
               std::to_string(group) + " from " + std::to_string(fewest) + " nodes");
  EXPECT_EQ(plan.has_value(), expected.has_value());
  if (!plan || !expected) return false;
  EXPECT_EQ(plan->nodes, expected->nodes);
  EXPECT_EQ(plan->remainder, expected->remainder);
  return true;
}

TEST(Distribute, MatchesTheExhaustiveSubsetSearch) {
  std::mt19937 random(13);
  const auto below = [&](int n) { return std::uniform_int_distribution(0, n - 1)(random); };
  int planned = 0;
  for (int round = 0; round < 4000; ++round) {
    std::vector<int> left(static_cast<std::size_t>(1 + below(7)));
    const int most = 1 + below(14);
    int total = 0;
    for (int& each : left)
      total += each = 1 + below(most);
    const int group = 1 + below(3);
    const int count = (1 + below(total)) / group * group;
    if (count == 0) continue;
    planned += expect_as_by_trying(left, count, group, 1 + below(static_cast<int>(left.size())));
  }
  EXPECT_GT(planned, 2000) << "or nothing was compared";
}

// One walk in 20,000: equally even remainders of different lengths, where the longer wins.
TEST(Distribute, PrefersTheLongerOfEqualRemainders) {
  EXPECT_TRUE(expect_as_by_trying({3, 4, 2, 3, 6, 1}, 11, 1, 6));
  EXPECT_TRUE(expect_as_by_trying({3, 2, 2, 2, 5, 2, 3}, 9, 1, 5));
  EXPECT_TRUE(expect_as_by_trying({5, 10, 8, 5, 3, 15, 9}, 27, 3, 5));
  EXPECT_TRUE(expect_as_by_trying({1, 6, 8, 5, 6}, 9, 1, 5));
}

// --- work ------------------------------------------------------------------------------------

TEST(Work, APackedTakeIsLinearInTheCpus) {
  std::mt19937 random(14);
  const Topology topology = machine({.sockets = 2,
                                     .nodes_per_socket = 4,
                                     .cores_per_node = 32,
                                     .threads = 2,
                                     .cores_per_uncore = 8});
  ASSERT_EQ(topology.cpus().size(), 512);
  for (const bool prefer_uncore : {false, true})
    for (const CpuOrder order : kOrders)
      for (int count = 1; count <= 512; count += 17) {
        WorkCounter work;
        const CpuSet available = some_of(topology.cpus(), 95, random);
        const TakeRules rules{.order = order, .prefer_uncore = prefer_uncore};
        const TakeResult taken = take(topology, available, count, rules, &work);
        EXPECT_EQ(taken.has_value(), count <= available.size());
        // 32 caches are sorted anew for each: measured, at most 44,000 with them, 11,000 without.
        EXPECT_LE(work.steps, prefer_uncore ? 100'000U : 25'000U) << count;
      }
}

TEST(Work, ADistributionIsNotExponentialInTheNodes) {
  for (const int nodes_per_socket : {4, 8, 16}) {
    const Topology topology = machine({.sockets = 2,
                                       .nodes_per_socket = nodes_per_socket,
                                       .cores_per_node = 256 / 2 / nodes_per_socket,
                                       .threads = 2});
    ASSERT_EQ(topology.cpus().size(), 512);
    std::mt19937 random(15);
    for (int count = 1; count <= 400; count += 37) {
      WorkCounter work;
      const CpuSet available = some_of(topology.cpus(), 90, random);
      const TakeResult taken = take(topology, available, count, {.across_numa = true}, &work);
      ASSERT_TRUE(taken) << taken.error().message();
      EXPECT_EQ(taken->size(), count);
      // 3^32 would be 1.8e15; measured on 32 nodes, 9 million at most.
      EXPECT_LE(work.steps, 20'000'000U) << count << " on " << 2 * nodes_per_socket << " nodes";
    }
  }
}

}  // namespace
}  // namespace headroom
