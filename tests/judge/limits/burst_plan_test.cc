// SPDX-License-Identifier: Apache-2.0
// When a pod is granted a burst above its quota, and when it is withdrawn.
#include "judge/limits/burst_plan.h"

#include <chrono>

#include <gtest/gtest.h>

namespace headroom::judge_limits {
namespace {

using namespace std::chrono_literals;

class BurstStory : public ::testing::Test {
 protected:
  // Readings of 200 ms for so long, or until there is something to do. Grants and withdraws as
  // planned. Returns the last step.
  BurstStep pass(Duration duration) {
    BurstPlan plan;
    for (Duration passed{0}; passed < duration; passed += kBurstPeriod) {
      reading.at += kBurstPeriod;
      plan = plan_burst(policy, reading, room - history.granted, history);
      if (plan.step == BurstStep::kGrant) history.granted = plan.cpus;
      if (plan.step == BurstStep::kWithdraw) history.granted = 0;
      if (plan.step != BurstStep::kKeep) break;
    }
    return plan.step;
  }
  void grant() {
    ASSERT_EQ(pass(3s), BurstStep::kGrant);
    began = reading.at;
  }
  double passed() const { return std::chrono::duration<double>(reading.at - began).count(); }

  BurstPolicy policy{.budget = 0.2F};
  double room = 0.8;
  // Throttled at 40 % of its quota on average, its CPUs half idle.
  BurstReading reading{.at = Instant{100s},
                       .busy = 0.5,
                       .throttled = true,
                       .bursting = false,
                       .quota = 0.5,
                       .used = 0.2};
  BurstHistory history;
  Instant began{};
};

TEST_F(BurstStory, AThrottledPodWithIdleCpusIsGrantedItsQuota) {
  began = reading.at;
  grant();
  EXPECT_EQ(history.granted, 0.5);
  reading.throttled = false;
  reading.bursting = true;
  EXPECT_EQ(pass(10min), BurstStep::kKeep) << "it uses the grant";
}

TEST_F(BurstStory, OnlyAfterASecondOfIdleCpus) {
  began = reading.at;
  ASSERT_EQ(pass(3s), BurstStep::kGrant);
  EXPECT_GE(passed(), 1.0);
  EXPECT_LE(passed(), 1.5);
}

TEST_F(BurstStory, ItIsWithdrawnWithinASecondOfContention) {
  grant();
  reading.busy = 0.95;
  EXPECT_EQ(pass(3s), BurstStep::kWithdraw);
  EXPECT_LE(passed(), 0.5);
  // And not granted again before the CPUs are calm.
  reading.busy = 0.85;
  EXPECT_EQ(pass(30s), BurstStep::kKeep);
  reading.busy = 0.5;
  EXPECT_EQ(pass(3s), BurstStep::kGrant);
}

TEST_F(BurstStory, OneBusyReadingIsNoContention) {
  grant();
  for (int i = 0; i < 20; ++i) {
    reading.busy = i % 2 ? 0.4 : 1.0;
    EXPECT_EQ(pass(kBurstPeriod), BurstStep::kKeep);
  }
}

TEST_F(BurstStory, UnknownGrantsNothingAndKeepsNothing) {
  reading.busy.reset();
  EXPECT_EQ(pass(10s), BurstStep::kKeep);
  EXPECT_EQ(history.granted, 0);
  reading.busy = 0.5;
  grant();
  reading.busy.reset();
  EXPECT_EQ(pass(1s), BurstStep::kWithdraw);
}

TEST_F(BurstStory, AGrantThatIsNotNeededEnds) {
  grant();
  reading.throttled = false;
  EXPECT_EQ(pass(2min), BurstStep::kWithdraw);
  EXPECT_GE(passed(), 60.0);
  EXPECT_LE(passed(), 61.0);
}

TEST_F(BurstStory, APodAtItsQuotaAllTheTimeSavesNothing) {
  reading.used = 0.5;
  EXPECT_EQ(pass(30s), BurstStep::kKeep);
  EXPECT_EQ(history.granted, 0);
}

TEST_F(BurstStory, AnUnknownMeanUseGrantsNothing) {
  reading.used.reset();
  EXPECT_EQ(pass(30s), BurstStep::kKeep);
  EXPECT_EQ(history.granted, 0);
}

TEST_F(BurstStory, WithoutABudgetNothingIsGranted) {
  policy.budget.reset();
  EXPECT_EQ(pass(30s), BurstStep::kKeep);
  EXPECT_EQ(history.granted, 0);
}

TEST_F(BurstStory, NoMoreThanTheBudgetHasLeft) {
  room = 0.3;
  grant();
  EXPECT_EQ(history.granted, 0.3);
  room = 0.2;  // the budget was lowered
  EXPECT_EQ(pass(1s), BurstStep::kWithdraw);
  room = 0.04;
  EXPECT_EQ(pass(10s), BurstStep::kKeep) << "a twelfth of its quota is not worth it";
}

TEST_F(BurstStory, APodThatIsNotThrottledIsGrantedNothing) {
  reading.throttled = false;
  EXPECT_EQ(pass(10s), BurstStep::kKeep);
  EXPECT_EQ(history.granted, 0);
}

}  // namespace
}  // namespace headroom::judge_limits
