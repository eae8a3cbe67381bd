// SPDX-License-Identifier: Apache-2.0
#include "observe/growing_waiters.h"

#include <chrono>
#include <map>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

using namespace std::chrono_literals;

class GrowingWaitersTest : public ::testing::Test {
 protected:
  // A cgroup that waited for so long since boot, with so much memory and swap; -1: without a
  // record.
  struct Cgroup {
    Duration global{}, limit{};
    std::int64_t memory = 0, swap = 0;
  };
  void sweep(Duration at) {
    std::vector<std::uint64_t> ids;
    std::vector<hr_stalls> stalls;
    std::map<std::uint64_t, hr_record> records;
    for (const auto& [id, cgroup] : cgroups_) {
      ids.push_back(id);
      hr_stalls& waits = stalls.emplace_back();
      waits.causes[HR_STALL_GLOBAL].ns = static_cast<hr_u64>(cgroup.global.count());
      waits.causes[HR_STALL_LIMIT].ns = static_cast<hr_u64>(cgroup.limit.count());
      if (cgroup.memory < 0) continue;
      records[id] = {.id = id,
                     .valid = HR_MEMORY_USAGE,
                     .memory_usage = static_cast<hr_u64>(cgroup.memory),
                     .swap_usage = static_cast<hr_u64>(cgroup.swap)};
    }
    waiters_.update(Instant{at}, {.ids = ids, .values = stalls}, [&](CgroupId id) {
      const auto found = records.find(id.value);
      return found == records.end() ? nullptr : &found->second;
    });
  }

  static constexpr std::int64_t kMiB = 1 << 20;
  std::map<std::uint64_t, Cgroup> cgroups_{{1, {.memory = 100 * kMiB}}, {2, {.memory = 50 * kMiB}}};
  GrowingWaiters waiters_;
};

TEST_F(GrowingWaitersTest, NobodyWaits) {
  sweep(1s);
  cgroups_[1].memory += 100 * kMiB;
  sweep(2s);
  EXPECT_EQ(waiters_.share(), 0);
}

TEST_F(GrowingWaitersTest, TheShareOfThoseThatGrow) {
  sweep(1s);
  cgroups_[1].global += 600ms;
  cgroups_[1].memory -= 20 * kMiB;  // a part of it went to swap
  cgroups_[1].swap += 60 * kMiB;
  cgroups_[2].global += 200ms;
  sweep(2s);
  EXPECT_DOUBLE_EQ(waiters_.share(), 0.75);
  cgroups_[1].global += 500ms;
  cgroups_[2].global += 500ms;
  sweep(3s);
  EXPECT_EQ(waiters_.share(), 0) << "it grows no longer";
}

TEST_F(GrowingWaitersTest, LittleGrowthIsNone) {
  sweep(1s);
  cgroups_[1].global += 600ms;
  cgroups_[1].memory += 10 * kMiB;
  sweep(11s);
  EXPECT_EQ(waiters_.share(), 0);
  cgroups_[1].global += 600ms;
  cgroups_[1].memory += 10 * kMiB + 1;
  sweep(21s);
  EXPECT_EQ(waiters_.share(), 1);
}

TEST_F(GrowingWaitersTest, ASweepSoonAfterAnotherIsLeftOut) {
  sweep(1s);
  cgroups_[1].global += 600ms;
  cgroups_[1].memory += 100 * kMiB;
  sweep(2s);
  EXPECT_EQ(waiters_.share(), 1);
  cgroups_[2].global += 5ms;
  sweep(2s + 10ms);
  EXPECT_EQ(waiters_.share(), 1);
  cgroups_[1].global += 495ms;
  cgroups_[1].memory += 50 * kMiB;
  sweep(3s);
  EXPECT_DOUBLE_EQ(waiters_.share(), 0.99);
}

TEST_F(GrowingWaitersTest, WaitsAtItsOwnLimitAreNotOfTheNode) {
  sweep(1s);
  cgroups_[1].limit += 600ms;
  cgroups_[1].memory += 100 * kMiB;
  cgroups_[2].global += 200ms;
  sweep(2s);
  EXPECT_EQ(waiters_.share(), 0);
}

TEST_F(GrowingWaitersTest, WithoutAccountedSwapTheMemoryCounts) {
  cgroups_[1].swap = -1;  // HR_UNKNOWN
  sweep(1s);
  cgroups_[1].global += 600ms;
  cgroups_[1].memory += 100 * kMiB;
  sweep(2s);
  EXPECT_EQ(waiters_.share(), 1);
  cgroups_[1].global += 600ms;
  sweep(3s);
  EXPECT_EQ(waiters_.share(), 0);
}

TEST_F(GrowingWaitersTest, WhatIsNotKnownDoesNotGrow) {
  cgroups_[2].memory = -1;
  sweep(1s);
  cgroups_[1] = {.global = 300ms, .memory = -1};
  cgroups_[2] = {.global = 300ms, .memory = 500 * kMiB};
  cgroups_[3] = {.global = 300ms, .memory = 500 * kMiB};
  sweep(2s);
  EXPECT_EQ(waiters_.share(), 0);
}

}  // namespace
}  // namespace headroom::observe
