// SPDX-License-Identifier: Apache-2.0
// The shared pool is never left with less than its pods requested: which pods are refused,
// which are admitted, and which pods keep what they have.
#include "judge/cpuset/assign_cpus.h"
#include "judge/cpuset/cpu_admission.h"
#include "judge/cpuset/cpuset_machine.h"
#include "judge/cpuset/cpuset_pods.h"
#include "judge/cpuset/repack.h"

#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom {
namespace {

CpuSet cpus(const char* list) {
  return CpuSet::parse(list).value();
}

// Eight CPUs, four cores {0,4} {1,5} {2,6} {3,7}.
StaticPolicy policy_with(const CpuReservation& reservation, bool strict = false) {
  return StaticPolicy::of({.topology = machine({}),
                           .options = {.strict_reservation = strict},
                           .reservation = reservation})
      .value();
}
StaticPolicy policy_of() {
  return policy_with({.cpus = cpus("0")});
}

Pod pinned(const char* uid, const char* cpu) {
  return pod_of(uid, {}, {container("c", cpu)});
}

std::string text_of(const CpuState& state) {
  std::string text = state.default_set.format();
  for (const auto& [uid, containers] : state.entries)
    for (const auto& [name, set] : containers)
      text.append("; ").append(uid).append("/").append(name).append(" ").append(set.format());
  return text;
}

struct Row {
  const char* name;
  CpuState known;
  std::vector<Pod> pods;
  std::int64_t others;  // thousandths that pods of the tiers requested
  const char* expected;
  SharedPool pool;
  std::size_t refused = 0;
};
void PrintTo(const Row& row, std::ostream* out) {
  *out << row.name;
}

const Row kRows[] = {
    {"nobody_shares", {}, {pinned("a", "7")}, 0, "0; a/c 1-7", {{0}, {0}}},
    {"as_much_as_is_left_is_enough",
     {},
     {pinned("a", "4")},
     3000,
     "0,3-4,7; a/c 1-2,5-6",
     {{3000}, {3000}}},
    {"a_thousandth_more_is_not", {}, {pinned("a", "4")}, 3001, "0-7", {{7000}, {7001}}, 1},
    {"the_first_to_come_takes_what_can_be_spared",
     {},
     {pinned("a", "4"), pinned("b", "1")},
     2500,
     "0,3-4,7; a/c 1-2,5-6",
     {{3000}, {3500}},
     1},
    {"who_is_refused_shares_and_counts",
     {},
     {pinned("a", "6"), pinned("b", "2"), pinned("d", "1")},
     1500,
     "0-7",
     {{7000}, {10500}},
     3},
    {"who_is_yet_to_be_served_does_not_count",
     {},
     {pinned("a", "4"), pinned("b", "3")},
     0,
     "0; a/c 1-2,5-6; b/c 3-4,7",
     {{0}, {0}}},
    {"a_part_of_a_cpu_is_of_the_pool",
     {},
     {pod_of("g", {}, {container("c", "1500m")}), pinned("a", "6")},
     0,
     "0-7",
     {{7000}, {7500}},
     1},
    {"of_a_pod_that_does_both_what_shares",
     {},
     {pod_of("m", {}, {container("c", "2"), container("d", "500m")})},
     4500,
     "0,2-4,6-7; m/c 1,5",
     {{5000}, {5000}}},
    {"and_it_is_refused_for_its_own_sake_too",
     {},
     {pod_of("m", {}, {container("c", "2"), container("d", "500m")})},
     4501,
     "0-7",
     {{7000}, {7001}},
     1},
    {"who_has_cpus_keeps_them_when_others_come",
     {cpus("0,4-7"), {{"a", {{"c", cpus("1-3")}}}}},
     {pinned("a", "3")},
     9000,
     "0,4-7; a/c 1-3",
     {{4000}, {9000}}},
    {"a_resize_to_more_is_refused_and_leaves_what_there_is",
     {cpus("0,2-4,6-7"), {{"a", {{"c", cpus("1,5")}}}}},
     {pinned("a", "4")},
     4000,
     "0,2-4,6-7; a/c 1,5",
     {{5000}, {4000}},
     1},
    {"a_resize_to_fewer_is_none_of_its_business",
     {cpus("0,3-4,7"), {{"a", {{"c", cpus("1-2,5-6")}}}}},
     {pinned("a", "2")},
     9000,
     "0,2-4,6-7; a/c 1,5",
     {{5000}, {9000}}},
    {"a_cpu_that_is_gone_is_not_replaced",
     {cpus("0-6"), {{"a", {{"c", cpus("7-8")}}}}},
     {pinned("a", "2")},
     6000,
     "0-6; a/c 7",
     {{6000}, {6000}},
     1},
    {"nor_one_that_is_reserved_now",
     {cpus("2-7"), {{"a", {{"c", cpus("0-1")}}}}},
     {pinned("a", "2")},
     6000,
     "0,2-7; a/c 1",
     {{6000}, {6000}},
     1},
};

class SharedPoolGuard : public testing::TestWithParam<Row> {
 protected:
  SharedPoolGuard() {
    for (const Pod& pod : GetParam().pods)
      active_.push_back(&pod);
  }
  CpuAssignment assigned(bool guarded) const {
    return assign_cpus(policy_, GetParam().known, active_, {},
                       {.requested = {GetParam().others}, .guarded = guarded});
  }

  const StaticPolicy policy_ = policy_of();
  std::vector<const Pod*> active_;
};

TEST_P(SharedPoolGuard, LeavesRequestedCpusInThePool) {
  const CpuAssignment arrangement = assigned(true);
  EXPECT_EQ(text_of(arrangement.state), GetParam().expected);
  EXPECT_EQ(arrangement.pool, GetParam().pool);
  ASSERT_EQ(arrangement.refused.size(), GetParam().refused);
  for (const PodRefusal& each : arrangement.refused)
    EXPECT_TRUE(std::holds_alternative<SharedPoolError>(each.why.refusal));
  EXPECT_TRUE(policy_.find_faults(arrangement.state).empty());
}

// As the kubelet does; the CPUs that were requested of the pool are reported all the same.
TEST_P(SharedPoolGuard, WithoutTheGuardNoPodIsRejected) {
  const CpuAssignment arrangement = assigned(false);
  for (const PodRefusal& each : arrangement.refused)
    EXPECT_FALSE(std::holds_alternative<SharedPoolError>(each.why.refusal));
  EXPECT_GE(arrangement.pool.requested.count, GetParam().others);
}

INSTANTIATE_TEST_SUITE_P(Rows, SharedPoolGuard, testing::ValuesIn(kRows),
                         [](const auto& row) { return row.param.name; });

TEST(SharedPool, ExcludesReservedCpusLikeAllocatable) {
  const auto size = [](const CpuReservation& reservation, bool strict = false) {
    const StaticPolicy policy = policy_with(reservation, strict);
    return pool_size(policy, policy.initial()).count;
  };
  EXPECT_EQ(size({.cpus = cpus("0-1")}), 6000);
  EXPECT_EQ(size(reservation_of(MilliCpu{1100})), 6900) << "two CPUs are set aside for it";
  EXPECT_EQ(size(reservation_of(MilliCpu{1100}), true), 6000) << "strictly";
  EXPECT_EQ(size({.count = 2}), 6000);
}

TEST(SharedPool, CountsRequestsOfContainersWithoutExclusiveCpus) {
  Pod pod = pod_of("p", {container("i", "3"), container("s", "250m", true)},
                   {container("c", "2"), container("d", "500m")});
  pod.overhead = {{"cpu", *Quantity::parse("100m")}};
  EXPECT_EQ(shared_pool_request(pod, {}).count, 3100) << "while it starts";
  CpuState state{cpus("0"), {{"p", {{"c", cpus("1-2")}}}}};
  EXPECT_EQ(shared_pool_request(pod, state).count, 3100);
  state.entries["p"]["i"] = cpus("1-3");
  EXPECT_EQ(shared_pool_request(pod, state).count, 850) << "250m and 500m and its overhead";
  state.entries["p"]["s"] = cpus("4");
  state.entries["p"]["d"] = cpus("5");
  EXPECT_EQ(shared_pool_request(pod, state).count, 0) << "its overhead runs on its own";
}

TEST(SharedPool, ARefusalHasAvailableAndNeededCpus) {
  const StaticPolicy policy = policy_of();
  const Pod pod = pinned("a", "4");
  const auto admitted = admit(policy, policy.initial(), pod);
  ASSERT_TRUE(admitted);
  const auto refused = find_pool_refusal(policy, policy.initial(), *admitted, pod, MilliCpu{3250});
  ASSERT_TRUE(refused);
  EXPECT_EQ(reason(refused->refusal), "SharedPoolError");
  EXPECT_EQ(message(refused->refusal),
            "Shared Pool Error: requested CPUs = 4, the shared pool would be left with = 3, its "
            "pods requested = 3250m");
  EXPECT_EQ(refused->container, "") << "the pod as a whole";
}

// Two that were refused could be served by making room; the pool spares CPUs for one of them.
TEST(SharedPool, RepackingDoesNotShrinkThePool) {
  const StaticPolicy policy =
      StaticPolicy::of({.topology = machine({.sockets = 2, .cores_per_node = 2}),
                        .reservation = {.cpus = cpus("0")},
                        .topology_rules = {.policy = TopologyPolicy::kSingleNumaNode}})
          .value();
  const Pod a = pinned("a", "1"), b = pinned("b", "1"), c = pinned("c", "4");
  const Pod* const pods[] = {&a, &b, &c};
  const CpuState known{cpus("0,3-7"), {{"a", {{"c", cpus("1")}}}, {"b", {{"c", cpus("2")}}}}};
  const auto served = [&](std::int64_t others) {
    const RepackPlan done = repack(policy, known, pods, {.requested = {others}, .guarded = true});
    return exclusive_cpus(done.state, "c", "c") != nullptr;
  };
  EXPECT_TRUE(served(1000));
  EXPECT_FALSE(served(1001));
  EXPECT_TRUE(exclusive_cpus(repack(policy, known, pods).state, "c", "c")) << "unguarded";
}

}  // namespace
}  // namespace headroom
