// SPDX-License-Identifier: Apache-2.0
// What the vectors of the memory manager do not contain: states and machines that the kubelet does
// not survive.
#include "judge/memory/memory_policy.h"

#include <gtest/gtest.h>

namespace headroom {
namespace {

Pod pod_with(const ResourceList& resources) {
  Pod pod;
  pod.uid = pod.name = "a";
  pod.containers = {{.name = "c", .requests = resources, .limits = resources}};
  return pod;
}

MemoryPolicy two_nodes() {
  const NumaMemorySize size{.memory = 4_GiB, .huge_pages = {{"hugepages-2Mi", 1_GiB}}};
  return {MemorySizes{{0, size}, {1, size}},
          ReservedMemory{{0, {{"memory", Quantity::of(1 << 30)}}}}};
}

TEST(MemoryPolicy, LeavesNothingWhereMoreIsReservedThanThereIs) {
  const MemoryPolicy policy(
      {{0, {.memory = 1_GiB, .huge_pages = {{"hugepages-1Gi", 1_GiB}}}}},
      {{0, {{"memory", Quantity::of(1 << 20)}, {"hugepages-1Gi", Quantity::of(2LL << 30)}}}});
  for (const auto& [resource, table] : policy.initial().machine.at(0).tables) {
    EXPECT_EQ(table.allocatable, 0_B) << resource;
    EXPECT_EQ(table.free, 0_B) << resource;
  }
}

TEST(MemoryPolicy, RefusesAPageSizeThatTheMachineLacks) {
  const MemoryPolicy policy = two_nodes();
  const Pod pod = pod_with({{"cpu", Quantity::of(1)},
                            {"memory", Quantity::of(1 << 20)},
                            {"hugepages-1Gi", Quantity::of(1 << 30)}});
  EXPECT_TRUE(policy.hints(policy.initial(), pod, pod.containers[0]).empty());
  const auto anywhere = policy.allocate(policy.initial(), pod, pod.containers[0], {});
  ASSERT_FALSE(anywhere);
  EXPECT_EQ(anywhere.error(), MemoryRefusal::kNoDefaultAffinity);
}

TEST(MemoryPolicy, RefusesNodesThatTheMachineLacks) {
  const MemoryPolicy policy = two_nodes();
  const Pod pod = pod_with({{"cpu", Quantity::of(1)}, {"memory", Quantity::of(1 << 20)}});
  const NumaHint lost{.nodes = NodeSet::of(5), .preferred = true};
  EXPECT_FALSE(policy.allocate(policy.initial(), pod, pod.containers[0], lost));

  MemoryState state = policy.initial();
  state.entries["a"]["c"] = {{NodeSet::of(5), "memory", 1_MiB}};
  EXPECT_EQ(policy.find_fault(state),
            "[memorymanager] (pod: a, container: c) the memory assignment uses the NUMA that does "
            "not exist");
  EXPECT_EQ(release_memory(state, "a", "c"), policy.initial());
}

TEST(MemoryPolicy, GivesMemoryOnceAndReleasesAll) {
  const MemoryPolicy policy = two_nodes();
  const Pod pod = pod_with({{"cpu", Quantity::of(1)}, {"memory", Quantity::of(4LL << 30)}});
  const auto once = policy.allocate(policy.initial(), pod, pod.containers[0], {});
  ASSERT_TRUE(once);
  EXPECT_EQ(memory_nodes(*once, "a", "c"), NodeSet::of(0) | NodeSet::of(1));
  const auto twice = policy.allocate(*once, pod, pod.containers[0], {});
  ASSERT_TRUE(twice);
  EXPECT_EQ(twice->machine, once->machine);
  EXPECT_FALSE(policy.find_fault(*twice));
  EXPECT_EQ(remove_stale(*twice, {}).machine, policy.initial().machine);
}

TEST(ReservedMemory, NamesEveryFault) {
  const auto faults = find_reservation_faults(
      {{0, {.memory = 4_GiB}}}, {{3, {{"hugepages-2Mi", *Quantity::parse("64Mi")}}}},
      {{"cpu", Quantity::of(1)}, {"memory", *Quantity::parse("1Gi")}});
  const std::vector<std::string> expected{
      "the reserved memory configuration references a NUMA node 3 that does not exist on this "
      "machine",
      R"(the total amount "64Mi" of type "hugepages-2Mi" is not equal to the value "0" determined by Node Allocatable feature)",
      R"(the total amount "0" of type "memory" is not equal to the value "1Gi" determined by Node Allocatable feature)",
      "[memorymanager] you should specify the system reserved memory"};
  EXPECT_EQ(faults, expected);
}

}  // namespace
}  // namespace headroom
