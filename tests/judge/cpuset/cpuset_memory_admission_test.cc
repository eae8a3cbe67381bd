// SPDX-License-Identifier: Apache-2.0
// CPUs and memory of a pod are assigned together: under one merged hint, or not at all.
#include "judge/cpuset/assign_cpus.h"
#include "judge/cpuset/cpuset_pods.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom {
namespace {

constexpr std::int64_t kGi = std::int64_t{1} << 30;

// Two nodes: CPUs 0-3 and 3 GiB for pods, CPUs 4-7 and 4 GiB.
class MemoryAdmission : public testing::Test {
 protected:
  static StaticPolicy cpu_policy(TopologyPolicy topology_policy, TopologyScope scope) {
    std::vector<CpuLocation> rows;
    for (int cpu = 0; cpu < 8; ++cpu)
      rows.push_back({.cpu = cpu, .core = cpu, .socket = cpu / 4, .numa = cpu / 4});
    return StaticPolicy::of({.topology = Topology::of(rows).value(),
                             .reservation = {.cpus = CpuSet{0}},
                             .topology_rules = {topology_policy, scope, false}})
        .value();
  }
  ResourceManagers managers() const {
    return {.cpus = &cpus_,
            .memory = &memory_,
            .rules = cpus_.config().topology_rules,
            .numa = &cpus_.topology().numa()};
  }
  ResourceState initial() const { return {cpus_.initial(), memory_.initial()}; }
  void use(TopologyPolicy topology_policy, TopologyScope scope = TopologyScope::kContainer) {
    cpus_ = cpu_policy(topology_policy, scope);
  }
  static Container container_of(const char* name, const char* cpu, std::int64_t memory) {
    Container all = container(name, cpu);
    all.requests["memory"] = all.limits["memory"] = Quantity::of(memory);
    return all;
  }
  static std::string text_of(const ResourceState& state, const Pod& pod) {
    std::string text;
    for (const auto* const list : {&pod.init_containers, &pod.containers})
      for (const Container& one : *list) {
        const CpuSet* const cpus = exclusive_cpus(state.cpus, pod.uid, one.name);
        text += (text.empty() ? "" : "; ") + one.name + " " + (cpus ? cpus->format() : "-") +
                " @ " + format_nodes(memory_nodes(state.memory, pod.uid, one.name));
      }
    return text;
  }

  StaticPolicy cpus_ = cpu_policy(TopologyPolicy::kRestricted, TopologyScope::kContainer);
  MemoryPolicy memory_{{{0, {.memory = Bytes{4 * kGi}}}, {1, {.memory = Bytes{4 * kGi}}}},
                       {{0, {{"memory", Quantity::of(kGi)}}}}};
};

TEST_F(MemoryAdmission, OneHintIsForBoth) {
  const Pod few_cpus = pod_of("a", {}, {container_of("c", "3", kGi)});
  EXPECT_EQ(text_of(*admit(managers(), initial(), few_cpus), few_cpus), "c 1-3 @ 0");
  const Pod more_cpus = pod_of("a", {}, {container_of("c", "4", kGi)});
  EXPECT_EQ(text_of(*admit(managers(), initial(), more_cpus), more_cpus), "c 4-7 @ 1");
  const Pod more_memory = pod_of("a", {}, {container_of("c", "1", 4 * kGi)});
  EXPECT_EQ(text_of(*admit(managers(), initial(), more_memory), more_memory), "c 4 @ 1");
  const Pod shared_cpus = pod_of("a", {}, {container_of("c", "500m", kGi)});
  EXPECT_EQ(text_of(*admit(managers(), initial(), shared_cpus), shared_cpus), "c - @ 0");
}

TEST_F(MemoryAdmission, TheScopeOfThePodIsOneNodeForAllContainers) {
  const Pod pod = pod_of("a", {}, {container_of("c", "2", kGi), container_of("d", "2", kGi)});
  EXPECT_EQ(text_of(*admit(managers(), initial(), pod), pod), "c 1-2 @ 0; d 4-5 @ 1");
  use(TopologyPolicy::kRestricted, TopologyScope::kPod);
  EXPECT_EQ(text_of(*admit(managers(), initial(), pod), pod), "c 4-5 @ 1; d 6-7 @ 1");
}

TEST_F(MemoryAdmission, ARefusedPodGetsNeither) {
  const Pod large = pod_of("a", {}, {container_of("c", "1", 8 * kGi)});
  const auto refused = admit(managers(), initial(), large);
  ASSERT_FALSE(refused);
  EXPECT_EQ(reason(refused.error().refusal), "UnexpectedAdmissionError");
  EXPECT_EQ(refused.error().container, "c");

  // CPU 7 is left, and 3 GiB on its node.
  ResourceState state =
      *admit(managers(), initial(), pod_of("b", {}, {container_of("c", "1", 2 * kGi)}));
  state = *admit(managers(), state, pod_of("d", {}, {container_of("c", "3", kGi)}));
  state.cpus.default_set -= CpuSet{2, 3};
  state.cpus.entries["e"]["c"] = CpuSet{2, 3};
  const Pod apart = pod_of("f", {}, {container_of("c", "1", 3 * kGi + 1)});
  const std::vector<const Pod*> active{&apart};
  const auto done = assign_resources(managers(), state, active);
  ASSERT_EQ(done.refused.size(), 1u);
  EXPECT_EQ(done.state.memory, state.memory);
}

TEST_F(MemoryAdmission, WhatAPodHasIsAHint) {
  const Pod pod = pod_of("a", {}, {container_of("c", "2", kGi)});
  ResourceState state{cpus_.initial(), memory_.initial()};
  state.cpus.default_set -= CpuSet{4, 5};
  state.cpus.entries["a"]["c"] = CpuSet{4, 5};
  EXPECT_EQ(text_of(*admit(managers(), state, pod), pod), "c 4-5 @ 1") << "memory joins its CPUs";

  state = *admit({.memory = &memory_, .rules = {}, .numa = &cpus_.topology().numa()},
                 {.cpus = cpus_.initial(), .memory = memory_.initial()},
                 pod_of("a", {}, {container_of("c", "2", 4 * kGi)}));
  const Pod large = pod_of("a", {}, {container_of("c", "2", 4 * kGi)});
  EXPECT_EQ(text_of(*admit(managers(), state, large), large), "c 4-5 @ 1")
      << "CPUs join its memory";
}

TEST_F(MemoryAdmission, AServedPodIsNotServedAgain) {
  const Pod pod = pod_of("a", {container_of("i", "1", 2 * kGi)}, {container_of("c", "1", kGi)});
  const std::vector<const Pod*> active{&pod};
  ResourceState state = assign_resources(managers(), initial(), active).state;
  EXPECT_EQ(text_of(state, pod), "i 1 @ 0; c 1 @ 0");
  state.memory = release_finished_init_memory(state.memory, pod, "c");
  state.memory.reusable = {};
  const ResourceState again = assign_resources(managers(), state, active).state;
  EXPECT_EQ(text_of(again, pod), "i 1 @ ; c 1 @ 0");
  EXPECT_EQ(again.memory, state.memory);
}

TEST_F(MemoryAdmission, EntriesThatDoNotFitAreLeftOut) {
  const Pod pod = pod_of("a", {}, {container_of("c", "1", kGi)});
  const std::vector<const Pod*> active{&pod};
  const MemoryBlock valid{NodeSet::of(1), "memory", Bytes{kGi}};
  struct Case {
    const char* name;
    PodMemory known;
    std::string nodes;
  };
  const Case cases[] = {
      {"kept", {{"a", {{"c", {valid}}}}}, "1"},
      {"a pod that is gone", {{"b", {{"c", {valid}}}}}, ""},
      {"a container that is gone", {{"a", {{"d", {valid}}}}}, ""},
      {"no such node", {{"a", {{"c", {{NodeSet::of(5), "memory", Bytes{kGi}}}}}}}, ""},
      {"no node", {{"a", {{"c", {{NodeSet{}, "memory", Bytes{kGi}}}}}}}, ""},
      {"no such resource", {{"a", {{"c", {{NodeSet::of(0), "hugepages-2Mi", {}}}}}}}, ""},
  };
  for (const Case& each : cases) {
    const MemoryState state = keep_memory(memory_, {.entries = each.known}, active);
    EXPECT_EQ(format_nodes(memory_nodes(state, "a", "c")), each.nodes) << each.name;
    EXPECT_EQ(memory_.find_fault(state), std::nullopt) << each.name;
  }
  const std::vector<RunningMemory> running{{"a", "c", NodeSet::of(1)}, {"x", "c", NodeSet::of(0)}};
  EXPECT_EQ(format_nodes(memory_nodes(keep_memory(memory_, {}, active, running), "a", "c")), "1");
}

}  // namespace
}  // namespace headroom
