// SPDX-License-Identifier: Apache-2.0
// The last half hour of the node, as charts have it.
#include "report/view/node_history.h"

#include <gtest/gtest.h>

namespace headroom::report {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Snapshot snapshot_at(Duration at, std::int64_t available) {
  Snapshot snapshot;
  snapshot.at = Instant(at);
  of(snapshot.observations, Signal::kMemoryAvailable) =
      Observation{.available = available, .capacity = 1000, .at = snapshot.at};
  return snapshot;
}

TEST(NodeHistory, KeepsHalfAnHourAtAFallingResolution) {
  NodeHistory history;
  EXPECT_TRUE(history.samples().empty());
  // An hour of four turns a second.
  for (int i = 0; i <= 4 * 3600; ++i)
    history.add(snapshot_at(milliseconds(250 * i), i));
  const auto samples = history.samples();
  const Instant end{seconds(3600)};
  EXPECT_EQ(samples.back().at, end);
  EXPECT_EQ(samples.back().available[0], 4 * 3600);
  EXPECT_LE(samples.size(), 120U + 180U);
  EXPECT_GE(end - samples.front().at, seconds(1790));
  for (std::size_t i = 1; i < samples.size(); ++i) {
    const Duration step = samples[i].at - samples[i - 1].at;
    EXPECT_GT(step, Duration::zero()) << i;
    EXPECT_LE(step, seconds(10)) << i;
    if (end - samples[i - 1].at < seconds(119)) EXPECT_EQ(step, seconds(1)) << i;
  }
}

TEST(NodeHistory, ASlowLoopLeavesGapsAndNoInventedValues) {
  NodeHistory history;
  for (const int second : {0, 1, 40, 41, 100})
    history.add(snapshot_at(seconds(second), second));
  const auto samples = history.samples();
  ASSERT_EQ(samples.size(), 5U);
  EXPECT_EQ(samples[2].at, Instant(seconds(40)));
  EXPECT_EQ(samples[2].available[0], 40);
}

TEST(NodeHistory, WhatIsUnknownStaysUnknown) {
  hr_stalls stalls{};
  stalls.causes[HR_STALL_GLOBAL].ns = 7;
  Snapshot snapshot;
  EXPECT_EQ(history_sample(snapshot).available[0], std::nullopt);
  EXPECT_EQ(history_sample(snapshot).waited[0], std::nullopt);
  snapshot.waits.node_stalls = &stalls;
  EXPECT_EQ(history_sample(snapshot).waited[HR_STALL_GLOBAL], 7U);
  EXPECT_EQ(history_sample(snapshot).waited.back(), std::nullopt) << "quotas are not watched";
}

}  // namespace
}  // namespace headroom::report
