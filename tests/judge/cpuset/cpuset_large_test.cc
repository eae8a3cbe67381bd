// SPDX-License-Identifier: Apache-2.0
// A machine of 512 CPUs, filled with pods and emptied: how much work that is. The figures are
// printed; no time is asserted.
#include "judge/cpuset/assign_cpus.h"
#include "judge/cpuset/cpuset_machine.h"
#include "judge/cpuset/cpuset_pods.h"
#include "judge/cpuset/repack.h"

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point began) {
  return std::chrono::duration<double, std::milli>(Clock::now() - began).count();
}

StaticPolicy large_policy() {
  return StaticPolicy::of({.topology = machine({.sockets = 4,
                                                .nodes_per_socket = 2,
                                                .cores_per_node = 32,
                                                .threads = 2,
                                                .cores_per_uncore = 8}),
                           .options = {.full_pcpus_only = true, .prefer_align_by_uncore = true},
                           .reservation = {.count = 8},
                           .topology_rules = {TopologyPolicy::kBestEffort}})
      .value();
}

TEST(Large, FiveHundredCpusAreAssigned) {
  const StaticPolicy policy = large_policy();
  const int free = policy.topology().cpus().size() - policy.reserved().size();
  std::vector<Pod> pods;
  for (int left = free, i = 0; left > 0; ++i) {
    const int wanted = std::min(left, 2 + 2 * (i % 4));
    pods.push_back(
        pod_of("p" + std::to_string(i), {}, {container("c", std::to_string(wanted).c_str())}));
    left -= wanted;
  }
  std::vector<const Pod*> active;
  CpuState state;
  const auto began = Clock::now();
  for (const Pod& pod : pods) {
    active.push_back(&pod);
    CpuAssignment next = assign_cpus(policy, state, active);
    ASSERT_TRUE(next.refused.empty()) << pod.name;
    state = std::move(next.state);
  }
  const double filled = milliseconds_since(began);
  EXPECT_EQ(assigned_cpus(state).size(), free);
  const auto again = Clock::now();
  EXPECT_EQ(assign_cpus(policy, state, active).state, state);
  const double settled = milliseconds_since(again);
  WorkCounter work;
  ASSERT_TRUE(take(policy.topology(), policy.topology().cpus(), 128,
                   take_rules(policy.config().options, policy.topology()), &work));
  std::printf(
      "    %zu pods one by one: %.1f ms each; all looked at again: %.1f ms; 128 of 512 CPUs: "
      "%llu steps\n",
      pods.size(), filled / static_cast<double>(pods.size()), settled,
      static_cast<unsigned long long>(work.steps));
  EXPECT_EQ(assign_cpus(policy, state, {}).state, policy.initial());
}

// Every second pod of a full machine is gone, and larger ones came to what was left.
TEST(Large, FragmentedCpusAreRepacked) {
  const StaticPolicy policy = large_policy();
  std::vector<Pod> pods;
  for (int i = 0; i < 126; ++i)
    pods.push_back(pod_of("p" + std::to_string(i), {}, {container("c", "4")}));
  for (int i = 0; i < 15; ++i)
    pods.push_back(pod_of("q" + std::to_string(i), {}, {container("c", "12")}));
  CpuState state = policy.initial();
  std::vector<const Pod*> left;
  for (std::size_t i = 0; i < 126; ++i) {
    state = *admit(policy, state, pods[i]);
    if (i % 2) left.push_back(&pods[i]);
  }
  state = remove_stale(state, left);
  for (std::size_t i = 126; i < pods.size(); ++i) {
    state = *admit(policy, state, pods[i]);
    left.push_back(&pods[i]);
  }
  const auto began = Clock::now();
  const RepackPlan done = repack(policy, state, left);
  std::printf("    %zu pods repacked in %.0f ms: %d CPUs moved, caches %d -> %d, nodes %d -> %d\n",
              left.size(), milliseconds_since(began), done.moved_cpus(), done.before.span.caches,
              done.after.span.caches, done.before.span.numa_nodes, done.after.span.numa_nodes);
  EXPECT_LT(done.after.span.caches, done.before.span.caches);
}

}  // namespace
}  // namespace headroom
