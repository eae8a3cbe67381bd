// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/sweep_schedule.h"

#include <chrono>

#include <gtest/gtest.h>

namespace headroom::daemon {
namespace {

using namespace std::chrono_literals;

Duration spent{};

class SweepPaceTest : public testing::Test {
 protected:
  void SetUp() override { spent = 40s; }  // of a former life
  void pass(Instant at, Duration cost) {
    spent += cost;
    pace.record_sweep(at, 1s);
  }
  const Instant began{100s};
  SweepSchedule pace{[] { return spent; }};
};

TEST_F(SweepPaceTest, WithinItsBudgetItKeepsThePeriod) {
  pace.set_cpu_budget(0.1);
  EXPECT_LE(pace.due(), began) << "the first pass is due at once";
  pass(began, 0s);
  EXPECT_EQ(pace.due(), began + 1s) << "what it cost to start does not count";
  pass(began + 1s, 100ms);
  EXPECT_EQ(pace.due(), began + 2s);
}

TEST_F(SweepPaceTest, BeyondItThePeriodGrowsAndComesBack) {
  pace.set_cpu_budget(0.1);
  pass(began, 0s);
  pass(began + 1s, 250ms);
  EXPECT_EQ(pace.period(), 2500ms);
  pass(began + 4s, 50ms);
  EXPECT_EQ(pace.period(), 1s);
}

TEST_F(SweepPaceTest, ItNeverGivesUp) {
  pace.set_cpu_budget(0.001);
  pass(began, 0s);
  pass(began + 1s, 10s);
  EXPECT_EQ(pace.period(), SweepSchedule::kLongest);
}

TEST_F(SweepPaceTest, WhatHappensHastensItAsFarAsItCanBeAfforded) {
  pace.set_cpu_budget(0.1);
  pass(began, 0s);
  pass(began + 1s, 50ms);
  pace.advance_to(began + 1200ms);
  EXPECT_EQ(pace.due(), began + 1500ms);
  pace.advance_to(began + 1700ms);
  EXPECT_EQ(pace.due(), began + 1500ms);
  pace.reset();
  EXPECT_LE(pace.due(), began);
}

}  // namespace
}  // namespace headroom::daemon
