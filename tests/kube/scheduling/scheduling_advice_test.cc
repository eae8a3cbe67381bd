// SPDX-License-Identifier: Apache-2.0
// When the scheduler is advised against a node, and when that ends: stories with a stepped clock.
#include "kube/scheduling/scheduling_advice.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::kube {
namespace {

using namespace std::chrono_literals;
using namespace headroom::literals;

constexpr auto kCpu = static_cast<std::size_t>(Advice::kCpuContention);
constexpr auto kMemory = static_cast<std::size_t>(Advice::kMemoryContention);
constexpr auto kShortage = static_cast<std::size_t>(Advice::kShortageExpected);

class Story {
 public:
  explicit Story(const AdviceStates& states = {}) : advice({}, states) {}

  // The same reading once a second.
  void pass(Duration time, const std::optional<NodeSignals>& signals) {
    for (const Instant end = now + time; now < end;) {
      now += 1s;
      const std::array before = holds();
      advice.update(signals, now, std::to_string(now.time_since_epoch() / 1s));
      for (std::size_t i = 0; i < kAdvices; ++i)
        changes[i] += before[i] != holds()[i] ? 1 : 0;
    }
  }
  std::array<bool, kAdvices> holds() const {
    return {advice.states()[0].holds, advice.states()[1].holds, advice.states()[2].holds};
  }

  Instant now{1000s};
  SchedulingAdvice advice;
  std::array<int, kAdvices> changes{};
};

NodeSignals cpu(double share) {
  return {.cpu_contention = share};
}

TEST(SchedulingAdvice, BeginsWithLastingContentionAndEndsAfterCalm) {
  Story story;
  story.pass(29s, cpu(0.5));
  EXPECT_FALSE(story.holds()[kCpu]) << "known for less than 30 seconds";
  EXPECT_FALSE(story.advice.states()[kCpu].known);
  story.pass(3s, cpu(0.5));
  EXPECT_TRUE(story.holds()[kCpu]);
  EXPECT_FALSE(story.advice.states()[kMemory].known) << "of memory nothing is known";
  const std::string since = story.advice.states()[kCpu].since;
  story.pass(5min, cpu(0.5));
  // From 0.5 to 0.05 takes ln(10) minutes, then two minutes of calm.
  story.pass(250s, cpu(0));
  EXPECT_TRUE(story.holds()[kCpu]);
  EXPECT_EQ(story.advice.states()[kCpu].since, since);
  story.pass(20s, cpu(0));
  EXPECT_FALSE(story.holds()[kCpu]);
  EXPECT_NE(story.advice.states()[kCpu].since, since);
}

TEST(SchedulingAdvice, AShortPeakIsNone) {
  Story story;
  story.pass(2min, cpu(0));
  story.pass(10s, cpu(1));  // 1 - exp(-10/60) = 0.154
  EXPECT_FALSE(story.holds()[kCpu]);
  story.pass(5s, cpu(1));
  EXPECT_TRUE(story.holds()[kCpu]) << "1 - exp(-15/60) = 0.221";
}

TEST(SchedulingAdvice, ALoadThatComesAndGoesChangesNothing) {
  // Half a minute of full contention and half a minute of none, for an hour.
  Story story;
  for (int i = 0; i < 60; ++i) {
    story.pass(30s, cpu(1));
    story.pass(30s, cpu(0));
  }
  EXPECT_TRUE(story.holds()[kCpu]);
  EXPECT_EQ(story.changes[kCpu], 1);
}

TEST(SchedulingAdvice, NeverChangesMoreThanOnceInTwoMinutesEach) {
  // The worst load: it ends each advice as soon as it can, and begins it again.
  Story story;
  for (int second = 0; second < 3600; ++second)
    story.pass(1s, cpu(story.holds()[kCpu] ? 0 : 1));
  EXPECT_GE(story.changes[kCpu], 10);
  EXPECT_LE(story.changes[kCpu], 3600 / 120 * 2);
}

TEST(SchedulingAdvice, WhatIsNotKnownNeitherBeginsNorEnds) {
  Story story;
  story.pass(1min, cpu(0.5));
  ASSERT_TRUE(story.holds()[kCpu]);
  story.pass(50s, std::nullopt);
  EXPECT_TRUE(story.advice.states()[kCpu].known);
  story.pass(15s, std::nullopt);
  EXPECT_FALSE(story.advice.states()[kCpu].known);
  story.pass(10min, std::nullopt);
  EXPECT_TRUE(story.holds()[kCpu]) << "it stays as it was";
  story.pass(31s, cpu(0));
  EXPECT_TRUE(story.advice.states()[kCpu].known && story.holds()[kCpu]) << "calm must last";
  story.pass(2min, cpu(0));
  EXPECT_FALSE(story.holds()[kCpu]);
}

TEST(SchedulingAdvice, GoesOnFromAnEarlierRun) {
  AdviceStates earlier;
  earlier[kCpu] = {.holds = true, .since = "then", .known = true};
  Story story(earlier);
  story.pass(40s, cpu(0.5));
  EXPECT_EQ(story.advice.states()[kCpu], earlier[kCpu]) << "neither a change nor a new time";
}

struct ShortageCase {
  const char* name;
  NodeSignals signals;
  std::optional<double> expected;
};

class ShortageTest : public testing::TestWithParam<ShortageCase> {};

TEST_P(ShortageTest, IsExpected) {
  EXPECT_EQ(expects_shortage(GetParam().signals, 5min), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    Shortage, ShortageTest,
    testing::Values(
        ShortageCase{"nothing_known", {}, std::nullopt},
        ShortageCase{"room", {.memory_left = 1_GiB}, 0},
        ShortageCase{"met", {.hard_threshold = "nodefs.available"}, 1},
        ShortageCase{"soon", {.shortage_in = 299s, .memory_left = 1_GiB}, 1},
        ShortageCase{"later", {.shortage_in = 301s, .memory_left = 1_GiB}, 0},
        ShortageCase{"later_and_room_unknown", {.shortage_in = 301s}, std::nullopt},
        ShortageCase{"pods_grow_into_it", {.memory_left = 1_GiB, .memory_growth = 2_GiB}, 1},
        ShortageCase{"pods_grow_less", {.memory_left = 2_GiB, .memory_growth = 2_GiB}, 0}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(SchedulingAdvice, AForecastMustLast) {
  const NodeSignals soon{.shortage_in = 60s, .memory_left = 1_GiB}, calm{.memory_left = 1_GiB};
  Story story;
  story.pass(5min, calm);
  story.pass(40s, soon);
  EXPECT_FALSE(story.holds()[kShortage]);
  story.pass(5s, soon);
  EXPECT_TRUE(story.holds()[kShortage]) << "ln(2) minutes";
  // It is seen in every third second: not for most of the minute.
  Story restless;
  for (int i = 0; i < 200; ++i) {
    restless.pass(1s, soon);
    restless.pass(2s, calm);
  }
  EXPECT_FALSE(restless.holds()[kShortage]);
}

}  // namespace
}  // namespace headroom::kube
