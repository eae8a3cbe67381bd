// SPDX-License-Identifier: Apache-2.0
// Cold memory that is pushed out: how the step follows what comes back.
#include "judge/limits/cold_memory.h"

#include <chrono>

#include <gtest/gtest.h>

namespace headroom::judge_limits {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

class ColdMemory : public ::testing::Test {
 protected:
  // The MiB to push out, a second after the last call. `back`: MiB that come back meanwhile.
  std::int64_t second(std::int64_t back = 0) {
    reading.at += 1s;
    reading.refaulted += static_cast<std::uint64_t>(back * kMiB);
    const std::int64_t bytes = plan_cold(policy, reading, history);
    reading.pushed += static_cast<std::uint64_t>(bytes);
    reading.usage -= bytes;
    return bytes / kMiB;
  }
  std::uint64_t cost() const { return history.cost / kMiB; }

  ColdPolicy policy{.below = 0.2F};
  ColdReading reading{
      .at = Instant{100s}, .usage = 1000 * kMiB, .request = 100 * kMiB, .refaulted = 500 * kMiB};
  ColdHistory history;
};

TEST_F(ColdMemory, TheStepGrowsWhileNothingComesBack) {
  EXPECT_EQ(second(), 16);
  EXPECT_EQ(second(), 24);
  EXPECT_EQ(second(), 36);
  for (int i = 0; i < 4; ++i)
    second();
  EXPECT_EQ(second(), 128) << "eight times the first step";
  EXPECT_EQ(cost(), 0u) << "what came back before does not count";
}

TEST_F(ColdMemory, WhatComesBackHalvesItAndPauses) {
  EXPECT_EQ(second(), 16);
  EXPECT_EQ(second(8), 0) << "half of it came back";
  EXPECT_EQ(second(), 0) << "a pause of two seconds";
  EXPECT_EQ(second(), 12) << "from the halved step on";
  EXPECT_EQ(second(12), 0);
  EXPECT_EQ(cost(), 20u);
}

TEST_F(ColdMemory, IsPushedNoFurtherThanMemorySwapHigh) {
  reading.swap_room = 20 * kMiB;
  EXPECT_EQ(second(), 16);
  EXPECT_EQ(second(), 20) << "and not 24";
  reading.swap_room = kMiB - 1;
  EXPECT_EQ(second(), 0);
  reading.swap_room.reset();
  EXPECT_EQ(second(), 54);
}

TEST_F(ColdMemory, WorkingMemoryIsLeftAlone) {
  std::int64_t pushed = 0;
  for (int i = 0; i < 600; ++i)
    pushed += second(pushed > 0 ? 16 : 0);
  EXPECT_LE(pushed, 1000) << "at most a small step a minute";
}

TEST_F(ColdMemory, NeverBelowTheRequest) {
  reading.usage = 110 * kMiB;
  EXPECT_EQ(second(), 10);
  EXPECT_EQ(second(), 0);
  reading.usage = 50 * kMiB;
  EXPECT_EQ(second(), 0);
}

TEST_F(ColdMemory, WhileThereIsMemoryOnlyTheCostIsCounted) {
  EXPECT_EQ(second(), 16);
  reading.wanted = false;
  EXPECT_EQ(second(1), 0);
  EXPECT_EQ(cost(), 1u);
  EXPECT_EQ(second(100), 0);
  EXPECT_EQ(cost(), 16u) << "no more than was pushed out";
}

TEST_F(ColdMemory, TotalsThatFallCountNothing) {
  EXPECT_EQ(second(), 16);
  reading.refaulted = 0;
  EXPECT_EQ(second(), 24);
  EXPECT_EQ(cost(), 0u);
}

}  // namespace
}  // namespace headroom::judge_limits
