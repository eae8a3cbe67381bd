// SPDX-License-Identifier: Apache-2.0
#include "daemon/turn/engine.h"

#include <chrono>

#include <gtest/gtest.h>

namespace headroom::daemon {
namespace {

using namespace std::chrono_literals;

Duration spent{};

class SweepSchedulerTest : public testing::Test {
 protected:
  void SetUp() override { spent = 40s; }  // of a former life
  void pass(Instant at, Duration cost) {
    spent += cost;
    sweep_scheduler.record_sweep(at, 1s);
  }
  void look(Instant at, Duration cost) {
    spent += cost;
    sweep_scheduler.record_look(at);
  }
  const Instant began{100s};
  SweepSchedule sweep_scheduler{[] { return spent; }};
};

TEST_F(SweepSchedulerTest, WithinItsBudgetItKeepsThePeriod) {
  sweep_scheduler.set_cpu_budget(0.1);
  EXPECT_LE(sweep_scheduler.due(), began) << "the first pass is due at once";
  pass(began, 0s);
  EXPECT_EQ(sweep_scheduler.due(), began + 1s) << "what it cost to start does not count";
  pass(began + 1s, 100ms);
  EXPECT_EQ(sweep_scheduler.due(), began + 2s);
}

TEST_F(SweepSchedulerTest, AboveItsBudgetThePeriodGrowsAndRecovers) {
  sweep_scheduler.set_cpu_budget(0.1);
  pass(began, 0s);
  pass(began + 1s, 250ms);
  EXPECT_EQ(sweep_scheduler.period(), 2500ms);
  pass(began + 4s, 50ms);
  EXPECT_EQ(sweep_scheduler.period(), 1s);
}

TEST_F(SweepSchedulerTest, ThePeriodIsBounded) {
  sweep_scheduler.set_cpu_budget(0.001);
  pass(began, 0s);
  pass(began + 1s, 10s);
  EXPECT_EQ(sweep_scheduler.period(), SweepSchedule::kMaxPeriod);
}

TEST_F(SweepSchedulerTest, EventsBringASweepForwardWithinTheBudget) {
  sweep_scheduler.set_cpu_budget(0.1);
  pass(began, 0s);
  pass(began + 1s, 50ms);
  sweep_scheduler.advance_to(began + 1200ms);
  EXPECT_EQ(sweep_scheduler.due(), began + 1500ms);
  sweep_scheduler.advance_to(began + 1700ms);
  EXPECT_EQ(sweep_scheduler.due(), began + 1500ms);
  sweep_scheduler.reset();
  EXPECT_LE(sweep_scheduler.due(), began);
}

TEST_F(SweepSchedulerTest, NoLookIsPutOffBeforeTheCreditIsUsedUp) {
  sweep_scheduler.set_cpu_budget(0.1);
  pass(began, 30ms);
  Instant at = began;
  for (int i = 0; i < 990; ++i)
    look(at += 2ms, 2ms);
  EXPECT_EQ(sweep_scheduler.next_look(), at) << "1.98 s of 2, and 0.198 earned meanwhile";
  for (int i = 0; i < 150; ++i)
    look(at += 2ms, 2ms);
  EXPECT_GT(sweep_scheduler.next_look(), at);
  look(at += 5s, 2ms);
  EXPECT_EQ(sweep_scheduler.next_look(), at) << "the budget filled it up";
}

TEST_F(SweepSchedulerTest, WithoutCreditALookIsPutOffByWhatTheTurnBeforeItCost) {
  sweep_scheduler.set_cpu_budget(0.1);
  pass(began, 30ms);
  look(began, SweepSchedule::kLookCredit);
  EXPECT_EQ(sweep_scheduler.next_look(), began) << "a sweep's time is the next sweep's to wait for";
  look(began, 2ms);
  EXPECT_EQ(sweep_scheduler.next_look(), began + 20ms);
  pass(began + 10ms, 30ms);
  look(began + 20ms, 1ms);
  EXPECT_EQ(sweep_scheduler.next_look(), began + 30ms) << "the sweep between is not counted";
  look(began + 30ms, 700ms);
  EXPECT_EQ(sweep_scheduler.next_look(), began + 30ms + SweepSchedule::kMaxLookPeriod);
  look(sweep_scheduler.next_look(), 1ms);
  EXPECT_EQ(sweep_scheduler.next_look(), began + 1040ms) << "and not the looks after it";
}

}  // namespace
}  // namespace headroom::daemon
