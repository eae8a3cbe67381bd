// SPDX-License-Identifier: Apache-2.0
// Which CPUs a request gets, by every way of taking them.
#include "judge/cpuset/allocation/take_cpus.h"
#include "judge/vectors/lines.h"
#include "judge/vectors/topology_json.h"

#include <algorithm>
#include <string>

namespace headroom::vectors {
namespace {

class CpuAssignmentVectors : public VectorTest {};

int free_cores(const Topology& topology, const CpuSet& available) {
  return static_cast<int>(
      std::ranges::count_if(topology.groups(Level::kCore),
                            [&](const CpuGroup& core) { return core.cpus.subset_of(available); }));
}

// Upstream's answer is wrong there: ours must be a right one, and cut no core it need not.
void expect_valid(const Topology& topology, const CpuSet& available, const CpuSet& cpus, int take) {
  EXPECT_EQ(cpus.size(), take);
  EXPECT_TRUE(cpus.subset_of(available)) << cpus.format();
  int whole = 0;
  for (const CpuGroup& core : topology.groups(Level::kCore))
    if (core.cpus.subset_of(available) && core.cpus.subset_of(cpus)) ++whole;
  const CpuSet left = available - cpus;
  EXPECT_LE(free_cores(topology, available) - whole - free_cores(topology, left), 1)
      << cpus.format() << " cuts more than one free core";
}

TEST_P(CpuAssignmentVectors, Agree) {
  const Topology& topology = topology_named(text("topology"));
  const CpuSet available = cpus_of(text("available"));
  const int count = line().at("take").get<int>();
  const TakeRules rules{
      .order = text("sort") == "spread" ? CpuOrder::kSpread : CpuOrder::kPacked,
      .prefer_uncore = line().at("prefer_uncore").get<bool>(),
      .across_numa = text("policy") == "distributed",
      .group = line().at("group").get<int>(),
  };
  const TakeResult taken = take(topology, available, count, rules);
  if (line().contains("error")) {
    ASSERT_FALSE(taken) << taken->format();
    EXPECT_EQ(taken.error().message(), text("error"));
    return;
  }
  ASSERT_TRUE(taken) << taken.error().message();
  if (line().contains("invalid_upstream")) return expect_valid(topology, available, *taken, count);
  const bool aliased = line().contains("expected_without_alias_bug");
  EXPECT_EQ(taken->format(), text(aliased ? "expected_without_alias_bug" : "expected"));
}

INSTANTIATE_TEST_SUITE_P(Lines, CpuAssignmentVectors,
                         testing::ValuesIn(lines_of("cpu_assignment.jsonl")), case_name);

}  // namespace
}  // namespace headroom::vectors
