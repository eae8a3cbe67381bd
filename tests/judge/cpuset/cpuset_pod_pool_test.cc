// SPDX-License-Identifier: Apache-2.0
// Pods with resources of their own that get a pool of CPUs: kept, taken over from the cgroups,
// damaged, and given up.
#include "judge/cpuset/assign_cpus.h"
#include "judge/cpuset/cpuset_machine.h"
#include "judge/cpuset/cpuset_pods.h"
#include "judge/cpuset/repack.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace headroom {
namespace {

CpuSet cpus(const char* list) {
  return CpuSet::parse(list).value();
}

// Eight CPUs: a core has N and N + 4. 0 is reserved.
StaticPolicy policy_of(TopologyRules rules, const char* reserved = "0") {
  return StaticPolicy::of({.topology = machine({}),
                           .reservation = {.cpus = cpus(reserved)},
                           .topology_rules = rules})
      .value();
}

constexpr TopologyRules kPool{.policy = TopologyPolicy::kBestEffort,
                              .scope = TopologyScope::kPod,
                              .pod_level_managers = true};
constexpr TopologyRules kByContainer{.policy = TopologyPolicy::kBestEffort,
                                     .scope = TopologyScope::kContainer,
                                     .pod_level_managers = true};
constexpr TopologyRules kOff{.policy = TopologyPolicy::kBestEffort, .scope = TopologyScope::kPod};

// `own` has its part, `any` shares the rest.
Pod pool_pod(const char* uid, const char* cpu, const char* own = "2") {
  Pod pod = pod_of(uid, {}, {container("own", own), {.name = "any"}});
  pod.pod_level = container("", cpu);
  return pod;
}

std::string text_of(const CpuState& state) {
  std::string text = state.default_set.format();
  for (const auto& [uid, pool] : state.pod_entries)
    text += "; " + uid + " " + pool.format();
  for (const auto& [uid, containers] : state.entries)
    for (const auto& [name, set] : containers)
      text += "; " + uid + "/" + name + " " + set.format();
  return text;
}

CpuState known_of(const char* shared, const char* pool, const char* own, const char* any) {
  return {.default_set = cpus(shared),
          .entries = {{"a", {{"own", cpus(own)}, {"any", cpus(any)}}}},
          .pod_entries = {{"a", cpus(pool)}}};
}

struct Row {
  const char* name;
  TopologyRules rules;
  CpuState known;
  std::vector<Pod> pods;
  std::vector<RunningCpus> running;
  const char* expected;
  std::size_t refused = 0;
  const char* reserved = "0";
};
void PrintTo(const Row& row, std::ostream* out) {
  *out << row.name;
}

const Row kRows[] = {
    {"a_new_pod_gets_whole_cores_and_divides_them",
     kPool,
     {},
     {pool_pod("a", "4")},
     {},
     "0,3-4,7; a 1-2,5-6; a/any 2,6; a/own 1,5"},
    {"a_known_pool_stays",
     kPool,
     known_of("0-2,4-6", "3,7", "3", "7"),
     {pool_pod("a", "2", "1")},
     {},
     "0-2,4-6; a 3,7; a/any 7; a/own 3"},
    {"a_resize_does_not_change_it",
     kPool,
     known_of("0-2,4-6", "3,7", "3", "7"),
     {pool_pod("a", "4", "3")},
     {},
     "0-2,4-6; a 3,7; a/any 7; a/own 3"},
    {"the_pool_of_a_pod_that_is_gone_returns",
     kPool,
     known_of("0-2,4-6", "3,7", "3", "7"),
     {},
     {},
     "0-7"},
    {"what_no_container_has_returns_as_well",
     kPool,
     known_of("0,4", "1-3,5-7", "3", "7"),
     {},
     {},
     "0-7"},
    {"a_missing_part_is_divided_again",
     kPool,
     {.default_set = cpus("0,3-4,7"),
      .entries = {{"a", {{"own", cpus("1,5")}}}},
      .pod_entries = {{"a", cpus("1-2,5-6")}}},
     {pool_pod("a", "4")},
     {},
     "0,3-4,7; a 1-2,5-6; a/any 2,6; a/own 1,5"},
    {"with_the_gate_off_the_pool_is_given_up",
     kOff,
     known_of("0-2,4-6", "3,7", "3", "7"),
     {pool_pod("a", "2", "1")},
     {},
     "0-7"},
    {"by_container_only_its_own_part_stays",
     kByContainer,
     known_of("0-2,4-6", "3,7", "3", "7"),
     {pool_pod("a", "2", "1")},
     {},
     "0-2,4-7; a/own 3"},
    {"from_containers_to_a_pool",
     kPool,
     {.default_set = cpus("0-2,4-7"), .entries = {{"a", {{"own", cpus("3")}}}}},
     {pool_pod("a", "2", "1")},
     {},
     "0,2-4,6-7; a 1,5; a/any 5; a/own 1"},
    {"a_lost_file_is_replaced_by_the_cgroups",
     kPool,
     {},
     {pool_pod("a", "4")},
     {{"a", "", cpus("2-3,6-7")}, {"a", "own", cpus("3,7")}, {"a", "any", cpus("2,6")}},
     "0-1,4-5; a 2-3,6-7; a/any 2,6; a/own 3,7"},
    {"or_by_what_a_kubelet_gave_the_containers",
     kPool,
     {},
     {pool_pod("a", "4")},
     {{"a", "", cpus("0-7")}, {"a", "own", cpus("3,7")}, {"a", "any", cpus("2,6")}},
     "0-1,4-5; a 2-3,6-7; a/any 2,6; a/own 3,7"},
    {"but_not_by_what_others_use_too",
     kPool,
     {},
     {pool_pod("a", "4")},
     {{"a", "", cpus("2-3,6-7")},
      {"a", "own", cpus("3,7")},
      {"a", "any", cpus("2,6")},
      {"b", "", cpus("7")}},
     "0,3-4,7; a 1-2,5-6; a/any 2,6; a/own 1,5"},
    {"a_pool_that_is_now_reserved_is_made_again",
     kPool,
     known_of("0-1,4-5", "2-3,6-7", "3,7", "2,6"),
     {pool_pod("a", "4")},
     {},
     "0,2,4,6; a 1,3,5,7; a/any 3,7; a/own 1,5",
     0,
     "0,2"},
    {"if_it_cannot_be_what_is_left_is_shared_in_the_pod",
     kPool,
     known_of("0", "1-7", "1,5", "2-4,6-7"),
     {pool_pod("a", "7")},
     {},
     "0,4; a 1-3,5-7; a/any 1-3,5-7; a/own 1-3,5-7",
     1,
     "0,4"},
    {"two_claims_of_one_cpu",
     kPool,
     {.default_set = cpus("0-1,4-5"),
      .entries = {{"a", {{"own", cpus("3")}, {"any", cpus("7")}}},
                  {"b", {{"own", cpus("2")}, {"any", cpus("6-7")}}}},
      .pod_entries = {{"a", cpus("3,7")}, {"b", cpus("2,6-7")}}},
     {pool_pod("a", "2", "1"), pool_pod("b", "2", "1")},
     {},
     "0,2,4,6; a 3,7; b 1,5; a/any 7; a/own 3; b/any 5; b/own 1"},
    {"nothing_would_be_left_to_share", kPool, {}, {pool_pod("a", "2")}, {}, "0-7", 1},
    {"a_part_of_a_cpu_makes_no_pool", kPool, {}, {pool_pod("a", "2500m")}, {}, "0-7"},
};

class PodPool : public testing::TestWithParam<Row> {};

TEST_P(PodPool, IsAssigned) {
  const Row& row = GetParam();
  const StaticPolicy policy = policy_of(row.rules, row.reserved);
  std::vector<const Pod*> active;
  for (const Pod& pod : row.pods)
    active.push_back(&pod);
  const CpuAssignment done = assign_cpus(policy, row.known, active, row.running);
  EXPECT_EQ(text_of(done.state), row.expected);
  EXPECT_EQ(done.refused.size(), row.refused);
  EXPECT_TRUE(done.state.admitted.empty());
  EXPECT_TRUE(policy.find_faults(done.state).empty());
  const CpuAssignment again = assign_cpus(policy, done.state, active);
  EXPECT_EQ(text_of(again.state), row.expected) << "stays as it is";
}

INSTANTIATE_TEST_SUITE_P(Rows, PodPool, testing::ValuesIn(kRows),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(PodPools, StayWhenOthersAreRepacked) {
  const StaticPolicy policy = policy_of(kPool);
  const Pod pool = pool_pod("a", "2", "1");
  const Pod other = pod_of("b", {}, {container("c", "2")});
  CpuState state = known_of("0-1,4", "2,6", "2", "6");
  state.entries["b"]["c"] = cpus("3,5");
  state.default_set = cpus("0-1,4,7");
  const std::vector<const Pod*> pods{&pool, &other};
  const RepackPlan plan = repack(policy, state, pods);
  ASSERT_EQ(plan.moves.size(), 1U);
  EXPECT_EQ(plan.moves[0].pod, "b");
  EXPECT_EQ(plan.state.pod_entries, state.pod_entries);
  EXPECT_EQ(plan.state.entries.at("a"), state.entries.at("a"));
}

TEST(PodPools, TakeNothingFromTheSharedPoolsRequests) {
  const StaticPolicy policy = policy_of(kPool);
  const Pod pod = pool_pod("a", "4");
  EXPECT_EQ(shared_pool_request(pod, {}).count, 4000);
  EXPECT_EQ(shared_pool_request(pod, admit(policy, policy.initial(), pod).value()).count, 0);
  const StaticPolicy by_container = policy_of(kByContainer);
  const CpuState state = admit(by_container, by_container.initial(), pod).value();
  EXPECT_EQ(text_of(state), "0,2-4,6-7; a/own 1,5");
  EXPECT_EQ(shared_pool_request(pod, state).count, 2000) << "the pod's, without its own CPUs";
}

}  // namespace
}  // namespace headroom
