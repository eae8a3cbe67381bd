// SPDX-License-Identifier: Apache-2.0
// Which pods are suppressed while pods with a guarantee lose time to the node's shortage of CPUs,
// and when they are released.
#include "judge/limits/suppress_plan.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::judge_limits {
namespace {

using namespace std::chrono_literals;

constexpr Duration kWindow = 5s;
constexpr Importance kBestEffort{.priority = 0, .burstable = false};
constexpr Importance kBatch{.priority = 10, .burstable = true};

struct SuppressibleCase {
  const char* name;
  QosClass qos;
  std::int32_t priority;
  bool critical;
  PodDescription description;
  bool expected;
};

TEST(Suppressible, NeverAPodWithAGuaranteeAboveTheBatchPriority) {
  constexpr auto kKnown = PodDescription::kComplete;
  const SuppressPolicy policy{.threshold = 0.2F, .batch_priority = 10};
  for (const SuppressibleCase& each : std::vector<SuppressibleCase>{
           {"best_effort", QosClass::kBestEffort, 0, false, kKnown, true},
           {"important_best_effort", QosClass::kBestEffort, 1000, false, kKnown, true},
           {"critical_best_effort", QosClass::kBestEffort, 0, true, kKnown, false},
           {"batch", QosClass::kBurstable, 10, false, kKnown, true},
           {"batch_below", QosClass::kBurstable, -10, false, kKnown, true},
           {"burstable_above", QosClass::kBurstable, 11, false, kKnown, false},
           {"critical_batch", QosClass::kBurstable, 0, true, kKnown, false},
           {"guaranteed", QosClass::kGuaranteed, -10, false, kKnown, false},
           {"awaited", QosClass::kBestEffort, 0, false, PodDescription::kAwaited, false}}) {
    Pod pod;
    pod.declared_qos = each.qos;
    pod.priority = each.priority;
    const PodReading reading{.pod = std::make_shared<Pod>(pod),
                             .cgroup = CgroupId{1},
                             .memory_request = {},
                             .critical = each.critical,
                             .description = each.description};
    EXPECT_EQ(suppressible(policy, reading).has_value(), each.expected) << each.name;
    const bool best_effort = each.qos == QosClass::kBestEffort;
    EXPECT_EQ(suppressible({.threshold = 0.2F}, reading).has_value(), each.expected && best_effort)
        << each.name << " without a batch priority";
  }
}

TEST(Suppressible, ALowerPriorityFirstThenBestEffort) {
  EXPECT_LT((Importance{-5, true}), (Importance{0, false}));
  EXPECT_LT((Importance{0, false}), (Importance{0, true}));
}

struct ContentionCase {
  const char* name;
  std::vector<SuppressReading> pods;
  std::optional<double> expected;
};

TEST(Contention, IsThatOfMoreImportantPodsWithAGuarantee) {
  const Importance more{.priority = 11, .burstable = true};
  for (const ContentionCase& each : std::vector<ContentionCase>{
           {"no_pods", {}, 0.0},
           {"protected", {{.waited = 0.3}, {.waited = 0.1}}, 0.3},
           {"best_effort_has_no_guarantee",
            {{.importance = Importance{50, false}, .waited = 0.9}, {.waited = 0.1}},
            0.1},
           {"its_own_importance", {{.importance = kBatch, .waited = 0.9}}, 0.0},
           {"more_important_batch", {{.importance = more, .waited = 0.9}}, 0.9},
           {"unknown", {{}}, std::nullopt},
           {"one_unknown", {{}, {.waited = 0.2}}, 0.2}})
    EXPECT_EQ(contention_above(kBatch, each.pods), each.expected) << each.name;
}

// A protected pod, one BestEffort pod and one batch pod, all of which run.
class SuppressStory : public ::testing::Test {
 protected:
  void pass(Duration duration) {
    for (Duration passed{0}; passed < duration; passed += kWindow) {
      at += kWindow;
      const std::vector<SuppressReading> pods{
          {.importance = {}, .waited = waited, .runs = true},
          {.importance = kBatch, .waited = batch_waited, .runs = batch_runs},
          {.importance = kBestEffort, .waited = 0.9, .runs = true}};
      plan_suppress(policy, at, pods, history);
    }
  }
  // How long, in windows, until the level is this one.
  Duration until(const std::optional<Importance>& level, Duration most = 30min) {
    const Instant began = at;
    while (history.level != level && at - began < most)
      pass(kWindow);
    EXPECT_EQ(history.level, level);
    return at - began;
  }

  SuppressPolicy policy{.threshold = 0.2F, .batch_priority = 10};
  Instant at{100s};
  std::optional<double> waited = 0.5, batch_waited = 0;
  bool batch_runs = true;
  SuppressHistory history;
};

TEST_F(SuppressStory, TheLeastImportantFirstAndTheNextOnlyIfThatIsNotEnough) {
  pass(kWindow);
  EXPECT_EQ(history.level, kBestEffort);
  EXPECT_TRUE(history.suppresses(kBestEffort));
  EXPECT_FALSE(history.suppresses(kBatch));
  EXPECT_EQ(until(kBatch), 2 * kWindow) << "a window that began after the step";
  EXPECT_TRUE(history.suppresses(kBestEffort));
}

TEST_F(SuppressStory, AtTheThresholdNothingIsSuppressed) {
  waited = 0.2F;
  pass(10min);
  EXPECT_FALSE(history.level);
}

TEST_F(SuppressStory, PodsWithoutAGuaranteeThatWaitForEachOtherAreLeftAlone) {
  waited = 0.0;
  pass(10min);
  EXPECT_FALSE(history.level);
}

TEST_F(SuppressStory, ForABatchPodOnlyTheLessImportantAreSuppressed) {
  waited = 0.0;
  batch_waited = 0.9;
  pass(10min);
  EXPECT_EQ(history.level, kBestEffort);
}

TEST_F(SuppressStory, PodsThatDoNotRunAreNoStep) {
  batch_runs = false;
  pass(10min);
  EXPECT_EQ(history.level, kBestEffort) << "contention goes on, and nothing else would help";
}

TEST_F(SuppressStory, ReleasedAfterAMinuteOfLowContentionTheMostImportantFirst) {
  until(kBatch);
  waited = 0.05;
  const Duration first = until(kBestEffort);
  EXPECT_GE(first, kFirstHold);
  EXPECT_LE(first, kFirstHold + 3 * kWindow);
  EXPECT_GE(until(std::nullopt), kFirstHold);
}

TEST_F(SuppressStory, BetweenHalfOfTheThresholdAndAllOfItNothingChanges) {
  pass(kWindow);
  waited = 0.15;
  pass(30min);
  EXPECT_EQ(history.level, kBestEffort);
}

TEST_F(SuppressStory, EachReturnOfContentionDoublesTheTimeUntilTheNextRelease) {
  Duration expected = kFirstHold;
  for (int i = 0; i < 7; ++i) {
    waited = 0.5;
    until(kBestEffort);
    waited = 0.05;
    const Duration held = until(std::nullopt);
    EXPECT_GE(held, expected) << i;
    EXPECT_LE(held, expected + 3 * kWindow) << i;
    expected = std::min(2 * expected, kLongestHold);
  }
  EXPECT_EQ(history.hold, kLongestHold);
  pass(kLongestHold + kWindow);
  waited = 0.5;
  until(kBestEffort);
  EXPECT_EQ(history.hold, kFirstHold) << "the contention is another one";
}

TEST_F(SuppressStory, UnknownSuppressesNothingAndKeepsNothing) {
  waited = batch_waited = std::nullopt;
  pass(10min);
  EXPECT_FALSE(history.level);
  waited = 0.5;
  until(kBestEffort);
  waited = std::nullopt;
  EXPECT_LE(until(std::nullopt), kFirstHold + 3 * kWindow);
}

TEST_F(SuppressStory, WithoutAThresholdNothingStays) {
  until(kBatch);
  policy.threshold.reset();
  pass(kWindow);
  EXPECT_FALSE(history.level);
}

}  // namespace
}  // namespace headroom::judge_limits
