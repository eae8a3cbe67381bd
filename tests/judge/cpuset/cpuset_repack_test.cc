// SPDX-License-Identifier: Apache-2.0
// What repacking moves, what it leaves, and that no container loses by it on any machine.
#include "judge/cpuset/cpu_admission.h"
#include "judge/cpuset/cpuset_machine.h"
#include "judge/cpuset/cpuset_pods.h"
#include "judge/cpuset/policy/static_policy.h"
#include "judge/cpuset/repack.h"

#include <iterator>
#include <map>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom {
namespace {

CpuSet cpus(const char* list) {
  return CpuSet::parse(list).value();
}

// Cores are {0,4} {1,5} {2,6} {3,7}; with two nodes the former two are on node 0. 0 is reserved.
const MachineShape kOneNode{}, kTwoNodes{.sockets = 2, .cores_per_node = 2};

StaticPolicy policy_of(const MachineShape& shape, TopologyPolicy topology_policy = {},
                       CpuPolicyOptions options = {}) {
  return StaticPolicy::of({.topology = machine(shape),
                           .options = options,
                           .reservation = {.cpus = cpus("0")},
                           .topology_rules = {.policy = topology_policy}})
      .value();
}

struct Held {
  const char* pod;
  const char* cpus;  // "": none
  int wants;
};

struct Row {
  const char* name;
  MachineShape shape;
  std::vector<Held> held;
  const char* expected;
  int moved;
  TopologyPolicy topology_policy = TopologyPolicy::kNone;
};
void PrintTo(const Row& row, std::ostream* out) {
  *out << row.name;
}

const Row kRows[] = {
    {"well_packed_stays", kOneNode, {{"a", "1,5", 2}, {"b", "2-3,6-7", 4}}, "a 1,5; b 2-3,6-7", 0},
    {"two_halves_become_a_core", kOneNode, {{"a", "1-2", 2}}, "a 1,5", 1},
    {"two_that_are_in_each_others_way",
     kOneNode,
     {{"a", "1-2", 2}, {"b", "5-6", 2}, {"c", "3,7", 2}},
     "a 1,5; b 2,6; c 3,7",
     2},
    {"two_nodes_become_one", kTwoNodes, {{"a", "1,3", 2}}, "a 1,5", 1},
    {"who_frees_a_core_moves", kOneNode, {{"a", "1", 1}, {"b", "2", 1}}, "a 4; b 2", 1},
    {"room_is_made_for_who_was_refused",
     kTwoNodes,
     {{"a", "1", 1}, {"b", "2", 1}, {"c", "", 4}},
     "a 1; b 4; c 2-3,6-7",
     5,
     TopologyPolicy::kSingleNumaNode},
    {"what_cannot_be_is_left", kOneNode, {{"a", "1-2", 2}, {"b", "", 9}}, "a 1,5", 1},
};

struct Node {
  CpuState state;
  std::vector<Pod> pods;
};
Node held_by(const StaticPolicy& policy, const std::vector<Held>& held) {
  Node all{policy.initial(), {}};
  for (const Held& each : held) {
    all.pods.push_back(pod_of(each.pod, {}, {container("c", std::to_string(each.wants).c_str())}));
    if (*each.cpus == '\0') continue;
    all.state.entries[each.pod]["c"] = cpus(each.cpus);
    all.state.default_set -= cpus(each.cpus);
  }
  return all;
}

std::vector<const Pod*> pointers(const std::vector<Pod>& pods) {
  std::vector<const Pod*> all;
  for (const Pod& pod : pods)
    all.push_back(&pod);
  return all;
}

std::string text_of(const CpuState& state) {
  std::string text;
  for (const auto& [uid, containers] : state.entries)
    for (const auto& [name, set] : containers)
      text.append(text.empty() ? "" : "; ").append(uid).append(" ").append(set.format());
  return text;
}

class Repack : public testing::TestWithParam<Row> {};

TEST_P(Repack, HasTheExpectedState) {
  const Row& row = GetParam();
  const StaticPolicy policy = policy_of(row.shape, row.topology_policy);
  const Node held = held_by(policy, row.held);
  const RepackPlan done = repack(policy, held.state, pointers(held.pods));
  EXPECT_EQ(text_of(done.state), row.expected);
  EXPECT_EQ(done.moved_cpus(), row.moved);
  EXPECT_EQ(done.moves.empty(), row.moved == 0);
  EXPECT_TRUE(policy.find_faults(done.state).empty());
  EXPECT_EQ(repack(policy, done.state, pointers(held.pods)).state, done.state) << "once is enough";
}

INSTANTIATE_TEST_SUITE_P(Rows, Repack, testing::ValuesIn(kRows),
                         [](const auto& row) { return row.param.name; });

TEST(Repack, TheGainIsReported) {
  const StaticPolicy policy = policy_of(kTwoNodes, TopologyPolicy::kSingleNumaNode);
  const Node held = held_by(policy, {{"a", "1,3", 2}, {"b", "2", 1}, {"c", "", 4}});
  const RepackPlan done = repack(policy, held.state, pointers(held.pods));
  EXPECT_EQ(done.before, (PackingScore{1, {3, 3, 3, 3}, 0, 2}));
  EXPECT_EQ(text_of(done.state), "a 1,5; b 4; c 2-3,6-7");
  EXPECT_EQ(done.after, (PackingScore{0, {3, 3, 3, 4}, 0, 0}));
  ASSERT_EQ(done.moves.size(), 3U);
  EXPECT_EQ(done.moves[2].from.format(), "") << "it shared";
}

TEST(Repack, UnmovableContainersStay) {
  const StaticPolicy policy = policy_of(kOneNode);
  const Node held = held_by(policy, {{"a", "1-2", 2}, {"b", "5-6", 2}, {"c", "3,7", 2}});
  const std::vector<const Pod*> some{&held.pods[0]};
  EXPECT_EQ(text_of(repack(policy, held.state, some).state), "a 1-2; b 5-6; c 3,7");
}

TEST(Repack, DistributedCpusStayDistributed) {
  const StaticPolicy nodes = policy_of(kTwoNodes, {}, {.distribute_across_numa = true});
  const Node over_nodes = held_by(nodes, {{"a", "1-3,5-7", 6}});
  EXPECT_EQ(text_of(repack(nodes, over_nodes.state, pointers(over_nodes.pods)).state), "a 1-3,5-7");
  const StaticPolicy cores = policy_of(kOneNode, {}, {.distribute_across_cores = true});
  const Node over_cores = held_by(cores, {{"a", "1-2", 2}});
  EXPECT_EQ(text_of(repack(cores, over_cores.state, pointers(over_cores.pods)).state), "a 1-2");
}

TEST(Repack, ContainersOfOnePodReuseCpusAsBefore) {
  const StaticPolicy policy = policy_of(kOneNode);
  const Pod pod = pod_of("a", {container("i", "2")}, {container("c", "2")});
  CpuState state = policy.initial();
  state.entries["a"] = {{"i", cpus("1-2")}, {"c", cpus("1-2")}};
  state.default_set -= cpus("1-2");
  const Pod* const pods[] = {&pod};
  EXPECT_EQ(text_of(repack(policy, state, pods).state), "a 1,5; a 1,5");
}

class Chance {
 public:
  explicit Chance(unsigned seed) : random_(seed) {}
  int below(int n) { return std::uniform_int_distribution(0, n - 1)(random_); }
  bool one_in(int n) { return below(n) == 0; }

  std::optional<StaticPolicy> policy() {
    CpuPolicyOptions options{.full_pcpus_only = one_in(3), .strict_reservation = one_in(3)};
    options.distribute_across_numa = one_in(4);
    options.prefer_align_by_uncore = !options.distribute_across_numa && one_in(3);
    auto made = StaticPolicy::of({.topology = odd_machine(random_),
                                  .options = options,
                                  .reservation = {.count = 1 + below(2)},
                                  .topology_rules = {static_cast<TopologyPolicy>(below(4))}});
    return made ? std::optional(std::move(*made)) : std::nullopt;
  }
  Pod pod(const std::string& uid) {
    const char* const kCpus[] = {"1", "2", "3", "4", "500m"};
    std::vector<Container> init, apps;
    if (one_in(4)) init.push_back(container("i", kCpus[below(5)], one_in(2)));
    for (int i = 1 + below(2); i > 0; --i)
      apps.push_back(container("c" + std::to_string(i), kCpus[below(5)]));
    return pod_of(uid, std::move(init), std::move(apps));
  }
  template <class Map>
  void erase_one(Map& map) {
    map.erase(std::next(map.begin(), below(static_cast<int>(map.size()))));
  }

 private:
  std::mt19937 random_;
};

// Two pods never have the same CPU, reserved ones have no owner, and each CPU is somewhere.
void expect_sound(const StaticPolicy& policy, const CpuState& state) {
  // Under strict reservation all may be given away.
  EXPECT_TRUE(state.default_set.empty() || policy.find_faults(state).empty());
  std::map<Cpu, std::string> owner;
  for (const auto& [uid, containers] : state.entries)
    for (const auto& [name, set] : containers) {
      EXPECT_FALSE(set.empty());
      EXPECT_FALSE(set.intersects(policy.reserved()));
      for (const Cpu cpu : set)
        EXPECT_EQ(owner.try_emplace(cpu, uid).first->second, uid) << "CPU " << cpu;
    }
}

TEST(Repack, NoPodGetsWorseOnAnyTopology) {
  Chance chance(7);
  int gained = 0, moved = 0;
  for (int round = 0; round < 12 && !testing::Test::HasFailure(); ++round) {
    const auto policy = chance.policy();
    if (!policy) continue;
    std::map<std::string, Pod> pods;
    CpuState state = policy->initial();
    for (int step = 0; step < 30; ++step) {
      std::vector<const Pod*> active;
      if (!pods.empty() && chance.one_in(2)) chance.erase_one(pods);
      const std::string uid = "p" + std::to_string(step);
      const Pod& pod = pods.emplace(uid, chance.pod(uid)).first->second;
      for (const auto& [name, each] : pods)
        active.push_back(&each);
      state = remove_stale(state, active);
      if (auto next = admit(*policy, state, pod)) state = *std::move(next);
    }
    std::vector<const Pod*> all;
    for (const auto& [uid, pod] : pods)
      all.push_back(&pod);
    const RepackPlan done = repack(*policy, state, all);
    expect_sound(*policy, done.state);
    for (const auto& [uid, containers] : state.entries)
      for (const auto& [name, set] : containers) {
        const CpuSet* const now = exclusive_cpus(done.state, uid, name);
        ASSERT_NE(now, nullptr) << uid;
        EXPECT_EQ(now->size(), set.size()) << uid << " " << name;
      }
    EXPECT_LE(done.after.unsatisfied_containers, done.before.unsatisfied_containers);
    EXPECT_EQ(done.moves.empty(), done.state == state);
    gained += done.moves.empty() ? 0 : 1;
    moved += done.moved_cpus();
  }
  EXPECT_GT(gained, 2);
  EXPECT_GT(moved, 10);
}

}  // namespace
}  // namespace headroom
