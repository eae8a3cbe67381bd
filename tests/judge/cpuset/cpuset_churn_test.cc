// SPDX-License-Identifier: Apache-2.0
// Pods come and go on any machine under any options: no exclusive CPU is shared, none is lost.
#include "judge/cpuset/cpu_admission.h"
#include "judge/cpuset/cpuset_machine.h"
#include "judge/cpuset/cpuset_pods.h"
#include "judge/cpuset/policy/static_policy.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom {
namespace {

// No CPU has two owners, but for an ordinary init container and those of its pod after it; shared
// and exclusive CPUs are together what the policy manages, and reserved ones have no owner.
void expect_sound(const StaticPolicy& policy, const CpuState& state,
                  const std::map<std::string, Pod>& pods) {
  std::map<Cpu, std::string> owner;
  for (const auto& [uid, containers] : state.entries) {
    const Pod& pod = pods.at(uid);
    for (const auto& [name, cpus] : containers) {
      EXPECT_FALSE(cpus.empty());
      EXPECT_FALSE(cpus.intersects(policy.reserved()));
      EXPECT_FALSE(cpus.intersects(state.default_set));
      const auto finishes = [&name = name](const Container& each) {
        return each.name == name && !each.sidecar;
      };
      const bool init = std::ranges::any_of(pod.init_containers, finishes);
      for (const Cpu cpu : cpus) {
        const auto [at, first] = owner.try_emplace(cpu, init ? uid : uid + "/" + name);
        if (init)
          EXPECT_TRUE(at->second.starts_with(uid)) << cpu << " of " << at->second << " and " << uid;
        else if (!first && at->second == uid)
          at->second = uid + "/" + name;
        else
          EXPECT_EQ(at->second, uid + "/" + name) << cpu;
      }
    }
  }
  CpuSet managed = policy.topology().cpus();
  if (policy.config().options.strict_reservation) managed -= policy.reserved();
  EXPECT_EQ(state.default_set | assigned_cpus(state), managed);
}

void expect_sizes(const CpuState& state, const Pod& pod) {
  for (const auto* const list : {&pod.init_containers, &pod.containers})
    for (const Container& each : *list) {
      const CpuSet* const cpus = exclusive_cpus(state, pod.uid, each.name);
      EXPECT_EQ(cpus ? cpus->size() : 0, exclusive_cpus_requested(pod, each, PodLevelMode::kOff));
    }
}

class Chance {
 public:
  explicit Chance(unsigned seed) : random_(seed) {}
  int below(int n) { return std::uniform_int_distribution(0, n - 1)(random_); }
  bool one_in(int n) { return below(n) == 0; }
  std::mt19937& engine() { return random_; }

  CpuPolicyOptions options() {
    CpuPolicyOptions options{.full_pcpus_only = one_in(3),
                             .align_by_socket = one_in(4),
                             .strict_reservation = one_in(3)};
    const int placement = below(4);
    options.distribute_across_numa = placement == 1;
    options.prefer_align_by_uncore = placement == 2;
    options.distribute_across_cores = placement == 3 && !options.full_pcpus_only;
    return options;
  }
  TopologyRules rules() {
    return {.policy = static_cast<TopologyPolicy>(below(4)),
            .scope = one_in(2) ? TopologyScope::kPod : TopologyScope::kContainer,
            .prefer_closest_numa = one_in(2)};
  }
  Pod pod(const std::string& uid) {
    const char* const kCpus[] = {"1", "2", "3", "4", "6", "500m"};
    const auto some = [&](const char* name, int most, bool init) {
      std::vector<Container> containers;
      for (int i = below(most + 1); i > 0; --i)
        containers.push_back(
            container(name + std::to_string(i), kCpus[below(6)], init && one_in(3)));
      return containers;
    };
    return pod_of(uid, some("init", 2, true), some("app", 3, false));
  }

 private:
  std::mt19937 random_;
};

TEST(StaticPolicy, NeverAssignsACpuTwice) {
  Chance chance(31);
  int made = 0;
  int refused = 0;
  for (int round = 0; round < 150; ++round) {
    const auto policy = StaticPolicy::of({.topology = odd_machine(chance.engine()),
                                          .options = chance.options(),
                                          .reservation = {.count = 1 + chance.below(2)},
                                          .topology_rules = chance.rules()});
    if (!policy) continue;  // align-by-socket where it cannot be
    CpuState state = policy->initial();
    std::map<std::string, Pod> pods;
    for (int step = 0; step < 30 && !HasFailure(); ++step) {
      if (!pods.empty() && chance.one_in(3)) {
        pods.erase(std::next(pods.begin(), chance.below(static_cast<int>(pods.size()))));
        std::vector<const Pod*> active;
        for (const auto& [uid, pod] : pods)
          active.push_back(&pod);
        state = remove_stale(state, active);
      } else {
        const Pod pod = chance.pod("pod" + std::to_string(step));
        const auto next = admit(*policy, state, pod);
        EXPECT_EQ(next.has_value(), admit(*policy, state, pod).has_value());
        if (!next) ++refused;
        if (!next) continue;
        EXPECT_EQ(*next, *admit(*policy, state, pod)) << "the same answer twice";
        ++made;
        state = *next;
        pods.emplace(pod.uid, pod);
        expect_sizes(state, pod);
      }
      expect_sound(*policy, state, pods);
    }
    state = remove_stale(state, {});
    EXPECT_EQ(state, policy->initial()) << "all is given back";
  }
  EXPECT_GT(made, 500);
  EXPECT_GT(refused, 250);
}

}  // namespace
}  // namespace headroom
