// SPDX-License-Identifier: Apache-2.0
#include "observe/stalled_pods.h"

#include <chrono>
#include <map>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMiB = 1 << 20;
// Pods; their containers are one more.
constexpr std::uint64_t kDatabase = 10, kHog = 20, kWeb = 30;

// A second for each sweep. The database holds 200 MiB of the 300 it requests; the hog requests
// nothing and takes 50 MiB.
class StalledPodsTest : public ::testing::Test {
 protected:
  StalledPodsTest() {
    for (const std::uint64_t pod : {kDatabase, kHog, kWeb})
      for (const std::uint64_t id : {pod, pod + 1})
        records_[id] = {.id = id,
                        .valid = HR_MEMORY_USAGE | HR_CPU,
                        .memory_usage = 200 * kMiB,
                        .cpu_usage_ns = 1'000'000'000};
    sweep({});
    sweep({});
  }
  // Each container waits and each pod runs for so long. What this adds, in milliseconds.
  std::uint64_t sweep(std::map<std::uint64_t, Duration> waits,
                      std::map<std::uint64_t, Duration> runs = {}) {
    for (const auto& [pod, wait] : waits)
      waited_[pod + 1] += static_cast<std::uint64_t>(wait.count());
    for (const auto& [pod, ran] : runs)
      records_[pod].cpu_usage_ns += static_cast<std::uint64_t>(ran.count());
    records_[kHog].swap_usage += hog_takes_;
    std::vector<std::uint64_t> ids;
    std::vector<hr_stalls> stalls;
    for (const std::uint64_t container : {kDatabase + 1, kHog + 1, kWeb + 1}) {
      ids.push_back(container);
      stalls.emplace_back().causes[cause_].ns = waited_[container];
    }
    const auto record_of = [&](CgroupId id) { return &records_.at(id.value); };
    const std::vector<PodReading> pods{
        {.cgroup = CgroupId{kDatabase},
         .record = &records_.at(kDatabase),
         .memory_request = request_,
         .description = description_},
        {.cgroup = CgroupId{kHog}, .record = has_record_ ? &records_.at(kHog) : nullptr},
        {.cgroup = CgroupId{kWeb}, .record = &records_.at(kWeb), .memory_request = request_}};
    const std::uint64_t before = stalled_.micros();
    if (waiters_.update(Instant{at_ += 1s}, {.ids = ids, .values = stalls}, record_of))
      stalled_.update(Instant{at_}, waiters_, pods, [](CgroupId id) {
        return id.value == 99 ? std::nullopt : std::optional(CgroupId{id.value / 10 * 10});
      });
    return (stalled_.micros() - before) / 1000;
  }

  std::map<std::uint64_t, hr_record> records_;
  std::map<std::uint64_t, std::uint64_t> waited_;
  hr_stall_cause cause_ = HR_STALL_REFAULT;
  Bytes request_{300 << 20};
  PodDescription description_ = PodDescription::kComplete;
  bool has_record_ = true;
  std::uint64_t hog_takes_ = 50 * kMiB;
  Duration at_ = 10s;
  GrowingWaiters waiters_;
  StalledPods stalled_;
};

TEST_F(StalledPodsTest, NoPodWaits) {
  EXPECT_EQ(sweep({}), 0u);
}

TEST_F(StalledPodsTest, APodWithinItsRequestCountsByItsTime) {
  EXPECT_EQ(sweep({{kDatabase, 400ms}}, {{kDatabase, 300ms}}), 285u) << "as if it ran for a second";
  EXPECT_EQ(sweep({{kDatabase, 400ms}}, {{kDatabase, 300ms}}), 400u);
}

TEST_F(StalledPodsTest, WhileNoPodAboveItsRequestGrowsNoneCounts) {
  hog_takes_ = kMiB;
  EXPECT_EQ(sweep({{kDatabase, 900ms}}), 0u) << "it reads back what it left in swap";
  hog_takes_ = kMiB + 1;
  EXPECT_GT(sweep({{kDatabase, 900ms}}), 0u);
}

TEST_F(StalledPodsTest, APodOfWhichFewTasksWaitIsNotStalled) {
  sweep({{kDatabase, 400ms}}, {{kDatabase, 7600ms}});
  EXPECT_EQ(sweep({{kDatabase, 400ms}}, {{kDatabase, 7600ms}}), 50u);
}

TEST_F(StalledPodsTest, NoMoreThanTheTimeThatPassed) {
  sweep({{kDatabase, 9s}});
  EXPECT_EQ(sweep({{kDatabase, 9s}}), 1000u);
}

TEST_F(StalledPodsTest, APodAboveItsRequestDoesNotCount) {
  EXPECT_EQ(sweep({{kHog, 900ms}}), 0u);
  records_[kDatabase].swap_usage = 101 * kMiB;
  EXPECT_EQ(sweep({{kDatabase, 900ms}}), 0u);
  records_[kDatabase].swap_usage = HR_UNKNOWN;  // no swap is accounted
  EXPECT_GT(sweep({{kDatabase, 900ms}}), 0u);
}

// Pages that come back keep their place in swap for a while.
TEST_F(StalledPodsTest, WhatIsInMemoryAndInSwapCountsOnce) {
  for (const std::uint64_t pod : {kDatabase, kHog})
    records_[pod].valid |= HR_MEMORY_STAT;
  records_[kDatabase].swap_usage = 150 * kMiB;
  EXPECT_EQ(sweep({{kDatabase, 900ms}}), 0u) << "it is above its request";
  records_[kDatabase].swapcached = 50 * kMiB;
  EXPECT_GT(sweep({{kDatabase, 900ms}}), 0u);
  hog_takes_ = 0;
  records_[kHog].memory_usage += 50 * kMiB;
  records_[kHog].swapcached += 50 * kMiB;
  EXPECT_EQ(sweep({{kDatabase, 900ms}}), 0u) << "the hog reads back what it has";
}

TEST_F(StalledPodsTest, APodWithinItsRequestMayGrow) {
  records_[kDatabase].memory_usage += 2 * kMiB;
  EXPECT_GT(sweep({{kDatabase, 900ms}}), 0u);
}

TEST_F(StalledPodsTest, WaitsAtItsOwnLimitDoNotCount) {
  for (const hr_stall_cause cause : {HR_STALL_LIMIT, HR_STALL_HIGH, HR_STALL_COMPACTION}) {
    cause_ = cause;
    EXPECT_EQ(sweep({{kDatabase, 900ms}}), 0u) << cause;
  }
  cause_ = HR_STALL_GLOBAL;
  EXPECT_GT(sweep({{kDatabase, 900ms}}), 0u) << "it takes a page for each that it reads back";
}

TEST_F(StalledPodsTest, WhatIsUnknownDoesNotCount) {
  has_record_ = false;
  EXPECT_EQ(sweep({{kDatabase, 900ms}}), 0u) << "whether the hog grows";
  has_record_ = true;
  sweep({});
  sweep({});
  description_ = PodDescription::kAwaited;
  EXPECT_EQ(sweep({{kDatabase, 900ms}}), 0u);
  description_ = PodDescription::kComplete;
  records_[kDatabase].valid = HR_MEMORY_USAGE;
  EXPECT_EQ(sweep({{kDatabase, 900ms}}), 0u);
}

TEST_F(StalledPodsTest, OfTwoPodsTheOneThatWaitsMoreCounts) {
  sweep({{kDatabase, 400ms}, {kWeb, 700ms}});
  EXPECT_EQ(sweep({{kDatabase, 400ms}, {kWeb, 700ms}}), 700u);
}

}  // namespace
}  // namespace headroom::observe
