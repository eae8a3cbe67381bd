// SPDX-License-Identifier: Apache-2.0
#include "observe/host_observer.h"

#include <optional>
#include <utility>

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

class StallAttributionTest : public ::testing::Test {
 protected:
  // A quarter of a second later, in which PSI grew by `micros`: what of it counts.
  std::uint64_t count(std::uint64_t micros, bool observed = true) {
    reading_.counted_at += 250ms;
    *reading_.stalled_micros += micros;
    std::optional<SwapReading> reading = reading_;
    attribution_.apply(observed ? &stalls_ : nullptr, growing_, reading);
    const std::uint64_t before = std::exchange(counted_, *reading->stalled_micros);
    return counted_ - before;
  }
  void wait(hr_stall_cause cause, Duration time) {
    stalls_.causes[cause].ns += static_cast<hr_u64>(time.count());
  }

  hr_stalls stalls_{};
  SwapReading reading_{.counted_at = kStart, .stalled_micros = 0};
  StallAttribution attribution_;
  double growing_ = 0;
  std::uint64_t counted_ = 0;
};

TEST_F(StallAttributionTest, TheNodesOwnCausesCountInFull) {
  count(0);
  wait(HR_STALL_GLOBAL, 100ms);
  wait(HR_STALL_REFAULT, 200ms);
  EXPECT_EQ(count(90'000), 90'000u);
}

TEST_F(StallAttributionTest, APodAtItsOwnLimitDoesNotCount) {
  count(0);
  wait(HR_STALL_LIMIT, 200ms);
  EXPECT_EQ(count(90'000), 0u);
  wait(HR_STALL_LIMIT, 150ms);
  wait(HR_STALL_REFAULT, 50ms);
  EXPECT_EQ(count(80'000), 20'000u) << "by the share of the node's causes";
}

TEST_F(StallAttributionTest, WhatGrowsDoesNotCount) {
  count(0);
  growing_ = 0.75;
  wait(HR_STALL_GLOBAL, 100ms);
  EXPECT_EQ(count(80'000), 20'000u);
  wait(HR_STALL_GLOBAL, 50ms);
  wait(HR_STALL_LIMIT, 50ms);
  EXPECT_EQ(count(80'000), 10'000u) << "of the half that is the node's";
}

TEST_F(StallAttributionTest, WhereWaitsAreNotObservedAllOfItCounts) {
  count(0, false);
  EXPECT_EQ(count(70'000, false), 70'000u);
}

TEST_F(StallAttributionTest, TheSameReadingCountsOnce) {
  count(0);
  std::optional<SwapReading> again = reading_;
  wait(HR_STALL_GLOBAL, 100ms);
  attribution_.apply(&stalls_, 0, again);
  EXPECT_EQ(*again->stalled_micros, counted_);
}

}  // namespace
}  // namespace headroom::observe
