// SPDX-License-Identifier: Apache-2.0
// A resize in place: of the CPUs a container has it keeps as many as it may, on every machine.
#include "judge/cpuset/assign_cpus.h"
#include "judge/cpuset/cpuset_machine.h"
#include "judge/cpuset/cpuset_pods.h"
#include "judge/cpuset/policy/static_policy.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom {
namespace {

CpuSet cpus(const char* list) {
  return CpuSet::parse(list).value();
}

struct Row {
  const char* name;
  const char* has;
  const char* wants;
  const char* expected;
  CpuPolicyOptions options{};
  TopologyPolicy topology_policy = TopologyPolicy::kBestEffort;
};
void PrintTo(const Row& row, std::ostream* out) {
  *out << row.name;
}

// Two nodes of two cores: {0,4} {1,5} and {2,6} {3,7}; 0 is reserved.
const Row kRows[] = {
    {"grows_into_its_own_core_first", "6", "2", "2,6"},
    {"then_into_its_node", "3,7", "3", "2-3,7"},
    {"and_over_it_where_it_must", "2-3,6-7", "5", "2-4,6-7"},
    {"shrinks_to_a_core", "2-3,6", "2", "2,6"},
    {"moves_where_it_would_span_more_nodes", "1,5", "4", "2-3,6-7"},
    {"whole_cores_stay_whole", "3,7", "4", "2-3,6-7", {.full_pcpus_only = true}},
    {"and_half_ones_go", "1-2", "4", "2-3,6-7", {.full_pcpus_only = true}},
    {"one_node_or_none", "1,5", "4", "2-3,6-7", {}, TopologyPolicy::kSingleNumaNode},
    {"evenly_is_only_what_the_policy_made", "3,7", "6", "1-6", {.distribute_across_numa = true}},
};

class KeepCurrentCpusTest : public testing::TestWithParam<Row> {};

TEST_P(KeepCurrentCpusTest, KeepsAllowedCpus) {
  const Row& row = GetParam();
  const StaticPolicy policy =
      StaticPolicy::of({.topology = machine({.sockets = 2, .cores_per_node = 2}),
                        .options = row.options,
                        .reservation = {.cpus = cpus("0")},
                        .topology_rules = {.policy = row.topology_policy}})
          .value();
  const Pod pod = pod_of("p", {}, {container("c", row.wants)});
  const Pod* const active[] = {&pod};
  const CpuSet has = cpus(row.has);
  const CpuState known{policy.topology().cpus() - has, {{"p", {{"c", has}}}}};
  const CpuAssignment done = assign_cpus(policy, known, active);
  ASSERT_TRUE(done.refused.empty()) << message(done.refused[0].why.refusal);
  EXPECT_EQ(exclusive_cpus(done.state, "p", "c")->format(), row.expected);
  EXPECT_TRUE(policy.find_faults(done.state).empty());
}

INSTANTIATE_TEST_SUITE_P(Rows, KeepCurrentCpusTest, testing::ValuesIn(kRows),
                         [](const auto& row) { return row.param.name; });

struct AdmittedCase {
  const char* name;
  const char* request;  // now
  CpuSet has;
  int admitted;          // 0: as many as it has
  const char* expected;  // what is to be requested
};

class AdmittedCpusTest : public testing::TestWithParam<AdmittedCase> {};

TEST_P(AdmittedCpusTest, AreKept) {
  const AdmittedCase& row = GetParam();
  const Pod pod = pod_of("p", {}, {container("c", row.request)});
  CpuState state{.default_set = {}, .entries = {{"p", {{"c", row.has}}}}};
  if (row.admitted > 0) state.admitted["p"]["c"] = row.admitted;
  const auto raised = with_admitted_cpus(pod, state, PodLevelMode::kOff);
  const Container& is = (raised ? *raised : pod).containers[0];
  EXPECT_EQ(is.requests.at("cpu"), *Quantity::parse(row.expected));
  EXPECT_EQ(is.limits.at("cpu"), is.requests.at("cpu"));
  EXPECT_EQ(raised.has_value(), std::string_view(row.request) != row.expected);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, AdmittedCpusTest,
    testing::Values(AdmittedCase{"more", "4", {1, 2}, 0, "4"},
                    AdmittedCase{"fewer", "1", {1, 2, 3}, 0, "3"},
                    AdmittedCase{"fewer_after_more", "3", {1, 2, 3, 4}, 2, "3"},
                    AdmittedCase{"fewer_than_at_first", "1", {1, 2, 3, 4}, 2, "2"},
                    AdmittedCase{"after_cpus_were_unplugged", "1", {1, 2}, 4, "2"},
                    AdmittedCase{"no_exclusive_ones_any_more", "1500m", {1, 2}, 0, "1500m"}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(AdmittedCpus, AreRememberedOnlyWhereTheNumberIsAnother) {
  const CpuState before{.default_set = {},
                        .entries = {{"p", {{"c", {1, 2}}, {"d", {3}}}}, {"gone", {{"c", {4}}}}}};
  const CpuState after{.default_set = {},
                       .entries = {{"p", {{"c", {1, 2, 5}}, {"d", {3}}}}, {"new", {{"c", {4}}}}}};
  const PodCpuCounts counts = changed_counts(before, after);
  EXPECT_EQ(counts, (PodCpuCounts{{"p", {{"c", 2}}}}));
}

// Pods of any machine are resized by chance: sizes are as wanted, no CPU is two's, who was not
// resized stays, and a resized container runs on no more nodes than if it were new.
TEST(KeepCurrentCpusTest, NoOtherPodChangesOnAnyTopology) {
  std::mt19937 random(5);
  const auto below = [&](int n) { return std::uniform_int_distribution(0, n - 1)(random); };
  int resized = 0, kept_some = 0;
  for (int round = 0; round < 200 && !testing::Test::HasFailure(); ++round) {
    const auto policy = StaticPolicy::of({.topology = odd_machine(random),
                                          .reservation = {.count = 1},
                                          .topology_rules = {TopologyPolicy::kBestEffort}});
    ASSERT_TRUE(policy);
    std::vector<Pod> pods;
    for (int i = 0; i < 4; ++i)
      pods.push_back(pod_of("p" + std::to_string(i), {},
                            {container("c", std::to_string(1 + below(4)).c_str()),
                             container("d", std::to_string(1 + below(2)).c_str())}));
    std::vector<const Pod*> active;
    for (const Pod& pod : pods)
      active.push_back(&pod);
    const CpuState before = assign_cpus(*policy, {}, active).state;
    Pod& one = pods[static_cast<std::size_t>(below(4))];
    const CpuSet* const had = exclusive_cpus(before, one.uid, "c");
    if (!had) continue;
    const CpuSet was = *had;
    one.containers[0] = container("c", std::to_string(1 + below(6)).c_str());
    const CpuAssignment after = assign_cpus(*policy, before, active);
    EXPECT_TRUE(policy->find_faults(after.state).empty());
    CpuSet all;
    for (const auto& [uid, containers] : after.state.entries)
      for (const auto& [name, own] : containers) {
        EXPECT_FALSE(own.intersects(all)) << uid << name;
        all |= own;
        const CpuSet* const before_it = exclusive_cpus(before, uid, name);
        if (uid == one.uid || !before_it) continue;  // it was refused then
        EXPECT_EQ(own, *before_it) << uid << name;
      }
    if (!after.refused.empty()) continue;
    const CpuSet& is = *exclusive_cpus(after.state, one.uid, "c");
    EXPECT_EQ(is.size(), exclusive_cpus_requested(one, one.containers[0], PodLevelMode::kOff));
    ++resized;
    kept_some += is.overlap(was) == std::min(is.size(), was.size()) ? 1 : 0;
  }
  EXPECT_GT(resized, 80);
  EXPECT_GT(kept_some, resized * 6 / 10) << resized;
}

}  // namespace
}  // namespace headroom
