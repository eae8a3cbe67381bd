// SPDX-License-Identifier: Apache-2.0
// Node allocatable: the sums of reserve and remainder, and the errors when there is too little.
#include "judge/allocatable/node_allocatable.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom {
namespace {

Quantity q(const char* text) {
  return *Quantity::parse(text);
}

Amounts small_node() {
  return {.cpu = MilliCpu{4000},
          .memory = 8_GiB,
          .ephemeral_storage = 100_GiB,
          .pids = Tasks{32'768},
          .huge_pages = {{2_MiB, 0_B}, {1_GiB, 0_B}}};
}

AllocatablePolicy reserving(Amounts kube, Amounts system) {
  AllocatablePolicy policy;
  policy.kube.amounts = std::move(kube);
  policy.system.amounts = std::move(system);
  return policy;
}

Threshold hard(Signal signal, ThresholdValue value) {
  return {.signal = signal, .value = std::move(value), .min_reclaim = {}};
}

std::vector<Threshold> usual_thresholds() {
  return {hard(Signal::kMemoryAvailable, q("100Mi")),
          hard(Signal::kNodeFsAvailable, Fraction{0.125F}),  // exact in binary
          hard(Signal::kNodeFsInodesFree, Fraction{0.05F}),
          hard(Signal::kImageFsAvailable, Fraction{0.15F}),
          hard(Signal::kAllocatableMemoryAvailable, q("100Mi"))};
}

TEST(Amounts, NeverBecomeNegative) {
  const Amounts whole{.cpu = MilliCpu{1000}, .memory = 1_GiB, .huge_pages = {{2_MiB, 4_MiB}}};
  const Amounts taken{.cpu = MilliCpu{1500}, .pids = Tasks{5}, .huge_pages = {{2_MiB, 6_MiB}}};
  EXPECT_EQ(remainder(whole, taken),
            (Amounts{.cpu = MilliCpu{0}, .memory = 1_GiB, .huge_pages = {{2_MiB, 0_B}}}));
  EXPECT_EQ(sum(whole, taken), (Amounts{.cpu = MilliCpu{2500},
                                        .memory = 1_GiB,
                                        .pids = Tasks{5},
                                        .huge_pages = {{2_MiB, 10_MiB}}}));
}

TEST(NodeAllocatable, SubtractsReservationsAndHardThresholds) {
  const auto policy =
      reserving({.cpu = MilliCpu{500}, .memory = 1_GiB, .pids = Tasks{1000}},
                {.cpu = MilliCpu{250}, .memory = 512_MiB, .ephemeral_storage = 10_GiB});
  const auto node = node_allocatable(small_node(), policy, usual_thresholds());
  ASSERT_TRUE(node);
  EXPECT_EQ(node->reservation, (Amounts{.cpu = MilliCpu{750},
                                        .memory = 1636_MiB,
                                        .ephemeral_storage = 23040_MiB,
                                        .pids = Tasks{1000}}));
  EXPECT_EQ(node->allocatable.cpu, MilliCpu{3250});
  EXPECT_EQ(node->allocatable.memory, 6556_MiB);
  EXPECT_EQ(node->allocatable.ephemeral_storage, 79360_MiB);
  EXPECT_EQ(node->allocatable.pids, Tasks{31'768});
  // The cgroup's limit leaves the thresholds in.
  EXPECT_EQ(node->pods_limit.memory, 6656_MiB);
  EXPECT_EQ(node->pods_limit.ephemeral_storage, 90_GiB);
}

TEST(NodeAllocatable, ThresholdsCount) {
  const Amounts capacity{.memory = 100_GiB, .ephemeral_storage = 100_GiB};
  struct Case {
    const char* says;
    Threshold threshold;
    Bytes memory;
    Bytes storage;
  };
  Threshold soft = hard(Signal::kMemoryAvailable, q("1Gi"));
  soft.grace = std::chrono::minutes(1);
  for (const Case& c :
       {Case{"memory", hard(Signal::kMemoryAvailable, q("1Gi")), 1_GiB, 0_B},
        // float32, as the kubelet has it: a little more than a tenth
        Case{"a_percentage", hard(Signal::kMemoryAvailable, Fraction{0.1F}), Bytes{10'737'418'400},
             0_B},
        Case{"nodefs", hard(Signal::kNodeFsAvailable, q("5Gi")), 0_B, 5_GiB},
        Case{"a_soft_one_does_not", soft, 0_B, 0_B},
        Case{"nor_does_imagefs", hard(Signal::kImageFsAvailable, q("5Gi")), 0_B, 0_B},
        Case{"nor_do_inodes", hard(Signal::kNodeFsInodesFree, q("5Gi")), 0_B, 0_B},
        Case{"nor_does_the_derived_one", hard(Signal::kAllocatableMemoryAvailable, q("1Gi")), 0_B,
             0_B}}) {
    const std::vector<Threshold> thresholds{c.threshold};
    const auto node = node_allocatable(capacity, {}, thresholds);
    ASSERT_TRUE(node) << c.says;
    EXPECT_EQ(node->allocatable.memory, *capacity.memory - c.memory) << c.says;
    EXPECT_EQ(node->allocatable.ephemeral_storage, *capacity.ephemeral_storage - c.storage)
        << c.says;
  }
}

TEST(NodeAllocatable, ThresholdsCanBeIgnored) {
  AllocatablePolicy policy;
  policy.ignore_eviction_threshold = true;
  EXPECT_EQ(node_allocatable(small_node(), policy, usual_thresholds())->allocatable.memory, 8_GiB);
}

TEST(NodeAllocatable, HugePagesAreNotAllocatableMemory) {
  Amounts capacity = small_node();
  capacity.huge_pages = {{2_MiB, 1_GiB}, {1_GiB, 2_GiB}};
  auto node = node_allocatable(capacity, {}, {});
  ASSERT_TRUE(node);
  EXPECT_EQ(node->allocatable.memory, 5_GiB);
  EXPECT_EQ(node->allocatable.huge_pages, capacity.huge_pages);
  EXPECT_EQ(node->pods_limit.memory, 8_GiB);  // the limit knows nothing of them

  capacity.huge_pages = {{1_GiB, 8_GiB}};
  node = node_allocatable(capacity, reserving({.memory = 1_GiB}, {}), {});
  ASSERT_TRUE(node);
  EXPECT_EQ(node->allocatable.memory, 0_B);
}

TEST(NodeAllocatable, ReportsEveryInsufficientResource) {
  const auto policy = reserving({.cpu = MilliCpu{3500}, .memory = 9_GiB, .pids = Tasks{10}},
                                {.cpu = MilliCpu{1500}, .ephemeral_storage = 95_GiB});
  const auto node = node_allocatable(small_node(), policy, usual_thresholds());
  ASSERT_FALSE(node);
  EXPECT_EQ(
      invalid_node_allocatable(node.error()),
      "invalid Node Allocatable configuration. "
      "Resource \"cpu\" has a reservation of 5 but capacity of 4. Expected capacity >= "
      "reservation. "
      "Resource \"ephemeral-storage\" has a reservation of 110080Mi but capacity of 100Gi. "
      "Expected "
      "capacity >= reservation. "
      "Resource \"memory\" has a reservation of 9316Mi but capacity of 8Gi. Expected capacity >= "
      "reservation.");
}

TEST(NodeAllocatable, AllOfItMayBeReserved) {
  const auto node = node_allocatable(small_node(), reserving({.memory = 8_GiB}, {}), {});
  ASSERT_TRUE(node);
  EXPECT_EQ(node->allocatable.memory, 0_B);
}

// The threshold alone may be what does not fit: 64 MiB with the default of 100Mi.
TEST(NodeAllocatable, AThresholdBeyondTheCapacityIsAnError) {
  const auto node = node_allocatable({.memory = 64_MiB}, {}, usual_thresholds());
  ASSERT_FALSE(node);
  EXPECT_EQ(node.error().front().resource, "memory");
}

TEST(NodeAllocatable, UnknownAmountsStayUnknown) {
  const auto node = node_allocatable({.cpu = MilliCpu{4000}}, {}, usual_thresholds());
  ASSERT_TRUE(node);
  EXPECT_FALSE(node->allocatable.memory);
  EXPECT_FALSE(node->pods_limit.ephemeral_storage);
  EXPECT_FALSE(node->reservation.memory);

  const auto reserved = node_allocatable({}, reserving({.pids = Tasks{10}}, {}), {});
  ASSERT_FALSE(reserved);
  EXPECT_EQ(reserved.error().front().what,
            "Resource \"pid\" has a reservation of 10 but a capacity that is not known. Expected "
            "capacity >= reservation.");
  EXPECT_TRUE(node_allocatable({}, reserving({.pids = Tasks{0}}, {}), {}));
}

TEST(NodeAllocatable, IsUpdatedWithTheCapacity) {
  const auto policy = reserving({.cpu = MilliCpu{1000}, .memory = 1_GiB}, {});
  Amounts capacity = small_node();
  capacity.memory = 16_GiB;
  capacity.cpu = MilliCpu{8000};
  EXPECT_EQ(node_allocatable(capacity, policy, {})->allocatable.memory, 15_GiB);
  EXPECT_EQ(node_allocatable(capacity, policy, {})->allocatable.cpu, MilliCpu{7000});
  capacity.memory = 512_MiB;
  EXPECT_FALSE(node_allocatable(capacity, policy, {}));
}

// However capacity, reserves and thresholds fall out: nothing is handed out twice.
TEST(NodeAllocatable, PartsNeverExceedTheCapacity) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  const std::int64_t amounts[] = {0, 1, 4095, 1 << 20, std::int64_t{1} << 33, kMax};
  int valid = 0;
  for (const std::int64_t capacity : amounts)
    for (const std::int64_t kube : amounts)
      for (const std::int64_t system : amounts)
        for (const std::int64_t huge : amounts)
          for (const auto& thresholds : {usual_thresholds(), std::vector<Threshold>{}}) {
            const Amounts whole{.cpu = MilliCpu{capacity},
                                .memory = Bytes{capacity},
                                .ephemeral_storage = Bytes{capacity},
                                .pids = Tasks{capacity},
                                .huge_pages = {{2_MiB, Bytes{huge}}}};
            const auto node = node_allocatable(
                whole,
                reserving({.cpu = MilliCpu{kube}, .memory = Bytes{kube}, .pids = Tasks{kube}},
                          {.cpu = MilliCpu{system},
                           .memory = Bytes{system},
                           .ephemeral_storage = Bytes{system}}),
                thresholds);
            if (!node) continue;
            ++valid;
            ASSERT_LE(node->allocatable.memory->count, capacity - node->reservation.memory->count);
            ASSERT_EQ(node->allocatable.cpu->count + node->reservation.cpu->count, capacity);
            ASSERT_EQ(node->allocatable.pids->count + node->reservation.pids->count, capacity);
            ASSERT_EQ(node->allocatable.ephemeral_storage->count +
                          node->reservation.ephemeral_storage->count,
                      capacity);
            ASSERT_GE(node->allocatable.memory->count, 0);
            ASSERT_GE(node->pods_limit.memory, node->allocatable.memory);
            ASSERT_LE(node->pods_limit.memory->count, capacity);
          }
  EXPECT_GT(valid, 100);
}

}  // namespace
}  // namespace headroom
