// SPDX-License-Identifier: Apache-2.0
// CpuSet against std::set, and what a topology refuses to be built from.
#include <headroom/cpuset.h>
#include <headroom/topology.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom {
namespace {

using Model = std::set<Cpu>;

CpuSet set_of(const Model& model) {
  CpuSet set;
  for (const Cpu cpu : model)
    set.insert(cpu);
  return set;
}

Model model_of(const CpuSet& set) {
  return {set.begin(), set.end()};
}

TEST(CpuSet, MatchesAStdSet) {
  std::mt19937 random(7);
  const auto below = [&](int n) { return std::uniform_int_distribution(0, n - 1)(random); };
  for (int round = 0; round < 500; ++round) {
    Model a;
    Model b;
    const int span = 1 + below(3000);
    for (int i = below(60); i > 0; --i)
      a.insert(below(span));
    for (int i = below(60); i > 0; --i)
      b.insert(below(span));
    const CpuSet set_a = set_of(a);
    const CpuSet set_b = set_of(b);
    Model both;
    std::ranges::set_intersection(a, b, std::inserter(both, both.end()));
    Model either = a;
    either.insert(b.begin(), b.end());
    Model only_a;
    std::ranges::set_difference(a, b, std::inserter(only_a, only_a.end()));

    EXPECT_EQ(model_of(set_a), a);
    EXPECT_EQ(model_of(set_a & set_b), both);
    EXPECT_EQ(model_of(set_a | set_b), either);
    EXPECT_EQ(model_of(set_a - set_b), only_a);
    EXPECT_EQ(set_a.overlap(set_b), static_cast<int>(both.size()));
    EXPECT_EQ(set_a.subset_of(set_b), std::ranges::includes(b, a));
    EXPECT_EQ(set_a.size(), static_cast<int>(a.size()));
    EXPECT_EQ(*CpuSet::parse(set_a.format()), set_a) << set_a.format();

    CpuSet emptied = set_a;
    for (const Cpu cpu : a) {
      EXPECT_TRUE(emptied.contains(cpu));
      emptied.erase(cpu);
      EXPECT_FALSE(emptied.contains(cpu));
    }
    EXPECT_EQ(emptied, CpuSet{}) << "equal sets are equal, however they came to be";
  }
}

TEST(CpuSet, RangesCrossWords) {
  for (const Cpu first : {0, 1, 62, 63, 64, 65, 127, 128})
    for (const Cpu length : {1, 2, 63, 64, 65, 128, 129}) {
      const CpuSet range = CpuSet::range(first, first + length - 1);
      EXPECT_EQ(range.size(), length);
      EXPECT_EQ(*range.begin(), first);
      EXPECT_FALSE(range.contains(first + length));
    }
  EXPECT_TRUE(CpuSet::range(3, 2).empty());
}

TEST(CpuSet, AHugeRangeIsRejected) {
  for (const char* const list :
       {"0-9223372036854775807", "0-4294967296", "0-1048576", "0-1048575,2000000-3048575"}) {
    const auto parsed = CpuSet::parse(list);
    ASSERT_FALSE(parsed) << list;
    EXPECT_NE(parsed.error().what.find("more than 1048576 CPUs"), std::string::npos);
  }
  EXPECT_EQ(CpuSet::parse("0-1048575")->size(), 1048576);
  EXPECT_EQ(CpuSet::parse("9223372036854775807")->format(), "9223372036854775807");
}

TEST(Topology, ReportsTheInvalidRow) {
  struct Case {
    std::vector<CpuLocation> rows;
    const char* what;
  };
  for (const Case& c : {
           Case{{}, "CPU topology: no CPU"},
           Case{{{0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}}, "CPU topology: CPU 0 is listed twice"},
           Case{{{0, -1, 0, 0, 0}}, "CPU topology: CPU 0: a negative number in its row"},
           Case{{{3, 3, 0, 64, 0}}, "CPU topology: CPU 3: NUMA node 64 is beyond 63"},
           Case{{{0, 0, 0, 0, 0}, {1, 0, 1, 0, 0}},
                "CPU topology: core 0 is in two sockets or NUMA nodes"},
       }) {
    const auto topology = Topology::of(c.rows);
    ASSERT_FALSE(topology);
    EXPECT_EQ(topology.error().what, c.what);
  }
}

TEST(Topology, CountsAndGroupsWhateverTheNumbering) {
  // CPU 2 and node 1 are missing; rows come in no order.
  const auto topology = Topology::of(
      {{9, 8, 1, 2, 1}, {0, 0, 0, 0, 0}, {8, 8, 1, 2, 1}, {1, 0, 0, 0, 0}, {3, 3, 0, 0, 0}});
  ASSERT_TRUE(topology);
  EXPECT_EQ(topology->cpus().format(), "0-1,3,8-9");
  EXPECT_EQ(topology->count(Level::kCore), 3);
  EXPECT_EQ(topology->cpus_per(Level::kCore), 1) << "an average, rounded down";
  EXPECT_EQ(topology->cpus_per(Level::kSocket), 2);
  EXPECT_EQ(topology->widened({0, 9}, Level::kCore).format(), "0-1,8-9");
  EXPECT_EQ(topology->cpus_of(NodeSet::of(2)).format(), "8-9");
  EXPECT_EQ(topology->nodes_of({1, 8}).ids(), (std::vector{0, 2}));
  EXPECT_EQ(topology->numa().distance(0, 0), 10);
  EXPECT_EQ(topology->numa().distance(0, 2), 20) << "unknown: the kernel's default";
}

// Its word ends where the numbers end.
TEST(CpuSet, TheLargestNumberIsValid) {
  const auto set = CpuSet::parse("9223372036854775807");
  ASSERT_TRUE(set);
  EXPECT_EQ(set->size(), 1);
  EXPECT_EQ(set->format(), "9223372036854775807");
}

}  // namespace
}  // namespace headroom
