// SPDX-License-Identifier: Apache-2.0
// What is changed about the swap of a pod: who is slowed down, from where on, and who is protected.
#include "judge/limits/pod_swap_plan.h"

#include <headroom/cgroup_record.h>

#include <memory>
#include <optional>

#include <gtest/gtest.h>

namespace headroom::judge_limits {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kSwap = 1000 * kMiB;

struct PodSwapPlanTest : ::testing::Test {
  PodSwapPlanTest() {
    record.valid = HR_MEMORY_USAGE | HR_MEMORY_STAT;
    record.populated = 1;
    record.inactive_file = 0;
    hold(300, 100);
    pod.declared_qos = QosClass::kBurstable;
  }
  // MiB of memory and of swap.
  void hold(std::uint64_t memory, std::uint64_t swap) {
    record.memory_usage = memory << 20;
    record.swap_usage = swap << 20;
  }
  PodSwapPlan plan(bool is_limited = false) {
    PodReading reading{
        .pod = std::make_shared<Pod>(pod), .cgroup = CgroupId{7}, .memory_request = request};
    reading.record = &record;
    reading.critical = critical;
    reading.description = description;
    return plan_pod_swap(policy, reading, swap_total, is_limited);
  }

  PodSwapPolicy policy{.high = 0.25F, .zswap_writeback = false, .protected_priority = 1000};
  Pod pod;
  Bytes request{200 * kMiB};
  hr_record record = unknown_record(7, 1);
  bool critical = false;
  PodDescription description = PodDescription::kComplete;
  std::optional<std::int64_t> swap_total = kSwap;
};

const PodSwapPlan kLimited{.high = Bytes{250 * kMiB}};
const PodSwapPlan kProtected{.keep_in_zswap = true};
const PodSwapPlan kNothing{};

TEST_F(PodSwapPlanTest, APodOverItsRequestHasAShareOfTheNodesSwap) {
  EXPECT_EQ(plan(), kLimited);
  swap_total = kSwap / 10 + 1234;
  EXPECT_EQ(plan().high->count % 65536, 0) << "the kernel would round it";
  EXPECT_EQ(plan().high->count, 25 * kMiB / 65536 * 65536);
}

TEST_F(PodSwapPlanTest, WhatItSwappedCountsAgainstTheRequestAndInactiveFilesDoNot) {
  hold(150, 51);
  EXPECT_EQ(plan(), kLimited);
  hold(150, 50);
  EXPECT_EQ(plan(), kNothing) << "not more than the request";
  hold(300, 50);
  record.inactive_file = 150 << 20;
  EXPECT_EQ(plan(), kNothing);
}

TEST_F(PodSwapPlanTest, ALimitedPodKeepsItUntilItUsesAnEighthLess) {
  hold(150, 26);
  EXPECT_EQ(plan(false), kNothing);
  EXPECT_EQ(plan(true), kLimited);
  hold(150, 25);
  EXPECT_EQ(plan(true), kNothing);
}

TEST_F(PodSwapPlanTest, ABestEffortPodIsOverItsRequest) {
  pod.declared_qos = QosClass::kBestEffort;
  request = {};
  hold(1, 0);
  EXPECT_EQ(plan(), kLimited);
}

TEST_F(PodSwapPlanTest, ProtectedPodsStayInZswapAndAreNeverSlowedDown) {
  pod.declared_qos = QosClass::kGuaranteed;
  EXPECT_EQ(plan(), kProtected);
  pod.declared_qos = QosClass::kBurstable;
  critical = true;
  EXPECT_EQ(plan(), kProtected);
  critical = false;
  pod.priority = 1000;
  EXPECT_EQ(plan(), kProtected);
  pod.priority = 999;
  EXPECT_EQ(plan(), kLimited);
  policy.protected_priority.reset();
  pod.priority = 1'000'000;
  EXPECT_EQ(plan(), kLimited) << "no priority protects";
}

TEST_F(PodSwapPlanTest, EachPartIsOffByItself) {
  policy.high.reset();
  EXPECT_EQ(plan(), kNothing);
  policy = {.high = 0.25F};
  EXPECT_EQ(plan(), kLimited);
  critical = true;
  EXPECT_EQ(plan(), kNothing) << "it may be written to a device, and is not slowed down";
}

TEST_F(PodSwapPlanTest, WhatIsInMemoryAndInSwapCountsOnce) {
  hold(200, 100);
  EXPECT_EQ(plan(), kLimited);
  record.swapcached = 100 << 20;
  EXPECT_EQ(plan(), kNothing) << "200 MiB, of which half keep their place in swap";
}

TEST_F(PodSwapPlanTest, TheUnknownChangesNothing) {
  record.swap_usage = HR_UNKNOWN;
  EXPECT_EQ(plan(false), kNothing);
  EXPECT_EQ(plan(true), kLimited);
  hold(300, 100);
  record.valid = HR_MEMORY_USAGE;
  EXPECT_EQ(plan(false), kNothing) << "the working set";
  record.valid = HR_MEMORY_USAGE | HR_MEMORY_STAT;
  description = PodDescription::kAwaited;
  EXPECT_EQ(plan(true), kNothing) << "its priority";
  description = PodDescription::kAwaitedProtected;
  EXPECT_EQ(plan(), kNothing);
}

TEST_F(PodSwapPlanTest, WithoutSwapOrWithoutProcessesNothing) {
  swap_total.reset();
  EXPECT_EQ(plan(true), kNothing);
  critical = true;
  EXPECT_EQ(plan(), kNothing);
  critical = false;
  swap_total = 100;
  EXPECT_EQ(plan(), kNothing) << "less than a page of it";
  swap_total = kSwap;
  record.populated = 0;
  EXPECT_EQ(plan(true), kNothing);
}

}  // namespace
}  // namespace headroom::judge_limits
