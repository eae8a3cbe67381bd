// SPDX-License-Identifier: Apache-2.0
// memory.pressure walked through stepped instants: held, it evicts; brief, unknown or over, it does
// not; and one eviction is given its time to help.
#include "support/story.h"

#include <gtest/gtest.h>

namespace headroom {
namespace {

using namespace test;
using std::chrono::seconds;
using Lines = std::vector<std::string>;
const Lines kNothing;
constexpr std::int64_t kWhole = 1'000'000;

// More than a fifth of the time lost, for ten seconds.
Policy more_than_a_fifth() {
  Policy policy;
  policy.thresholds = {Threshold{.signal = Signal::kMemoryPressure,
                                 .value = Fraction{0.8f},
                                 .grace = seconds(10),
                                 .min_reclaim = std::nullopt}};
  policy.mode = Mode::kEnforce;
  policy.pressure_transition = seconds(30);
  return policy;
}

class Pressure : public ::testing::Test {
 protected:
  Pressure() {
    story_.pod("hog", 2_GiB);
    story_.pod("web", 512_MiB);
  }
  // So many percent lost at that second; absent: not known.
  Lines at(int second, std::optional<int> lost) {
    Snapshot snapshot = story_.snapshot(second * 1000, 2_GiB);
    if (lost)
      of(snapshot.observations, Signal::kMemoryPressure) =
          Observation{kWhole - *lost * kWhole / 100, kWhole, snapshot.at};
    judge(story_.policy, snapshot, story_.history, story_.verdict);
    for (const Decision& decision : story_.verdict.decisions)
      record_outcome(
          Outcome{.decision = decision, .result = Outcome::Result::kDone, .at = snapshot.at},
          story_.verdict.after);
    story_.history = story_.verdict.after;
    return story_.decided();
  }
  bool condition() const {
    return story_.verdict.conditions[static_cast<std::size_t>(Condition::kMemoryPressure)];
  }

  Story story_{more_than_a_fifth()};
};

TEST_F(Pressure, SetsTheConditionAtOnceAndEvictsAfterTheGrace) {
  EXPECT_EQ(at(0, 5), kNothing);
  EXPECT_FALSE(condition());
  for (int second = 1; second < 11; ++second)
    EXPECT_EQ(at(second, 60), kNothing) << second;
  EXPECT_TRUE(condition());
  EXPECT_EQ(at(11, 60), Lines{"kill hog"}) << "the furthest over its request";
  EXPECT_EQ(story_.verdict.decisions[0].reason.signal, Signal::kMemoryPressure);
  EXPECT_FALSE(story_.verdict.decisions[0].reason.hard);
}

TEST_F(Pressure, ExactlyTheThresholdIsNotMet) {
  for (int second = 0; second <= 20; ++second)
    EXPECT_EQ(at(second, 20), kNothing);
  EXPECT_FALSE(condition());
}

TEST_F(Pressure, OneSampleWithoutPressureRestartsTheGrace) {
  for (int second = 0; second <= 9; ++second)
    at(second, 60);
  at(10, 0);
  for (int second = 11; second <= 20; ++second)
    EXPECT_EQ(at(second, 60), kNothing) << second;
  EXPECT_EQ(at(21, 60), Lines{"kill hog"});
}

TEST_F(Pressure, UnknownPressureTripsNothing) {
  for (int second = 0; second <= 30; ++second)
    EXPECT_EQ(at(second, std::nullopt), kNothing);
  EXPECT_FALSE(condition());
  at(31, 60);
  EXPECT_EQ(at(50, std::nullopt), kNothing) << "past its grace, but the value is unknown";
}

TEST_F(Pressure, AfterAnEvictionTheGraceRestarts) {
  for (int second = 0; second <= 10; ++second)
    at(second, 60);
  ASSERT_EQ(story_.history.victims.size(), 1u);
  story_.remove_pod(0);
  for (int second = 11; second <= 20; ++second)
    EXPECT_EQ(at(second, 60), kNothing) << "what was waited before says nothing: " << second;
  // Gone at 11, so the grace begins after that.
  EXPECT_EQ(at(21, 60), kNothing);
  EXPECT_EQ(at(22, 60), Lines{"kill web"});
}

TEST_F(Pressure, OnePodIsEvictedAtATime) {
  for (int second = 0; second <= 9; ++second)
    at(second, 60);
  EXPECT_EQ(at(10, 60), Lines{"kill hog"});
  EXPECT_EQ(at(11, 60), kNothing) << "the victim is waited for";
}

TEST_F(Pressure, MemoryFreedByItsVictimCounts) {
  story_.policy.thresholds.push_back(memory_below(500_MiB));
  story_.record(0).anon = 300 << 20;
  story_.record(1).anon = 400 << 20;
  for (int second = 0; second <= 10; ++second)
    at(second, 60);
  ASSERT_EQ(story_.history.victims.size(), 1u);
  story_.step(10'010, 200_MiB);
  EXPECT_EQ(story_.decided(), kNothing) << "300 MiB are on their way";
  story_.step(10'020, 199_MiB);
  EXPECT_EQ(story_.decided(), Lines{"kill web"}) << "which will not do any longer";
}

TEST_F(Pressure, OfCpusSetsItsConditionAfterTheGraceAndEvictsNoPod) {
  story_.policy.thresholds.front().signal = Signal::kCpuPressure;
  const auto cpu_at = [&](int second, std::optional<int> lost) {
    Snapshot snapshot = story_.snapshot(second * 1000, 2_GiB);
    if (lost)
      of(snapshot.observations, Signal::kCpuPressure) =
          Observation{kWhole - *lost * kWhole / 100, kWhole, snapshot.at};
    judge(story_.policy, snapshot, story_.history, story_.verdict);
    story_.history = story_.verdict.after;
    EXPECT_EQ(story_.decided(), kNothing) << second;
    return story_.verdict.conditions[static_cast<std::size_t>(Condition::kCpuPressure)];
  };
  for (int second = 0; second < 10; ++second)
    EXPECT_FALSE(cpu_at(second, 60)) << second;
  EXPECT_TRUE(cpu_at(10, 60));
  EXPECT_FALSE(condition()) << "memory is not short";
  EXPECT_TRUE(cpu_at(11, 60)) << "and no pod is evicted however long it lasts";
  EXPECT_TRUE(cpu_at(40, 5)) << "it holds for the transition period";
  EXPECT_FALSE(cpu_at(71, 5));
  EXPECT_FALSE(cpu_at(72, std::nullopt));
}

TEST_F(Pressure, HasNoForecast) {
  at(0, 0);
  at(1, 5);
  at(2, 10);
  EXPECT_EQ(story_.verdict.thresholds[0].time_to, std::nullopt);
  EXPECT_GE(story_.verdict.next_check - at_ms(2000), story_.policy.check_ceiling)
      << "looked at no more often than need be";
}

}  // namespace
}  // namespace headroom
