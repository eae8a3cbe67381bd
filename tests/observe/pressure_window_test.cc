// SPDX-License-Identifier: Apache-2.0
#include "observe/host_observer.h"

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

using namespace std::chrono_literals;

constexpr Instant kStart{100s};
constexpr std::int64_t kCpus = 2;

class PressureWindowTest : public ::testing::Test {
 protected:
  // What is lost, in percent, `after` the start; absent where it is not known.
  std::optional<double> lost(Duration after) {
    const auto seen = window_.add(kStart + after, &stalls_);
    if (!seen) return std::nullopt;
    EXPECT_EQ(seen->capacity, PressureWindow::kWhole);
    EXPECT_EQ(seen->at, kStart + after);
    return 100.0 * static_cast<double>(seen->capacity - seen->available) / 1e6;
  }
  void wait(hr_stall_cause cause, Duration time) {
    stalls_.causes[cause].ns += static_cast<hr_u64>(time.count());
    ++stalls_.causes[cause].count;
  }

  hr_stalls stalls_{};
  PressureWindow window_{1s, kCpus};
};

TEST_F(PressureWindowTest, NothingIsKnownBeforeAWindowHasPassed) {
  EXPECT_EQ(lost(0s), std::nullopt);
  EXPECT_EQ(lost(999ms), std::nullopt);
  EXPECT_EQ(lost(1s), 0);
}

TEST_F(PressureWindowTest, IsAPartOfWhatTheCpusHad) {
  lost(0s);
  wait(HR_STALL_GLOBAL, 500ms);
  wait(HR_STALL_REFAULT, 100ms);
  EXPECT_DOUBLE_EQ(*lost(1s), 30) << "0.6 of 2 CPU seconds";
}

TEST_F(PressureWindowTest, APodsOwnLimitIsNotTheNodesPressure) {
  lost(0s);
  for (const hr_stall_cause cause : {HR_STALL_LIMIT, HR_STALL_HIGH, HR_STALL_COMPACTION})
    wait(cause, 2s);
  EXPECT_DOUBLE_EQ(*lost(1s), 0);
}

TEST_F(PressureWindowTest, IsOverAWindowAfterTheLastWait) {
  lost(0s);
  wait(HR_STALL_GLOBAL, 1s);
  EXPECT_DOUBLE_EQ(*lost(1s), 50);
  EXPECT_DOUBLE_EQ(*lost(2s), 0);
}

TEST_F(PressureWindowTest, SlidesHoweverOftenItIsAsked) {
  double most = 0;
  for (Duration at = 0s; at <= 5s; at += 1ms) {
    if (at >= 2s && at < 3s) wait(HR_STALL_GLOBAL, 1ms);
    const auto now = lost(at);
    EXPECT_EQ(now.has_value(), at >= 1s) << at.count();
    if (now) most = std::max(most, *now);
    if (at == 2500ms) {
      EXPECT_NEAR(*now, 25, 3);
    }
    if (at >= 4200ms) {
      EXPECT_DOUBLE_EQ(*now, 0);
    }
  }
  EXPECT_NEAR(most, 50, 3) << "one task of two CPUs, all of the time";
}

TEST_F(PressureWindowTest, MoreTasksThanCpusCannotLoseMoreThanAll) {
  lost(0s);
  wait(HR_STALL_GLOBAL, 60s);
  EXPECT_DOUBLE_EQ(*lost(1s), 100);
}

TEST_F(PressureWindowTest, WhatIsNotWatchedIsNotKnownAndStartsAfresh) {
  lost(0s);
  EXPECT_EQ(window_.add(kStart + 1s, nullptr), std::nullopt);
  EXPECT_EQ(lost(2s), std::nullopt);
  EXPECT_EQ(lost(3s), 0);
}

TEST_F(PressureWindowTest, RareLooksAverageOverTheTimeBetween) {
  lost(0s);
  wait(HR_STALL_GLOBAL, 2s);
  EXPECT_DOUBLE_EQ(*lost(10s), 10);
}

}  // namespace
}  // namespace headroom::observe
