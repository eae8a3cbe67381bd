// SPDX-License-Identifier: Apache-2.0
// What is offered to batch pods, and when it is taken back: stories with a stepped clock.
#include "kube/scheduling/batch_resources.h"

#include <gtest/gtest.h>

namespace headroom::kube {
namespace {

using namespace std::chrono_literals;
using namespace headroom::literals;

constexpr Bytes kMemory = 100_GiB;  // a step is 5 GiB

class Batch : public testing::Test {
 protected:
  void pass(Duration time, const std::optional<NodeSignals>& signals) {
    for (const Instant end = now + time; now < end;) {
      now += 1s;
      batch.update(signals, now);
    }
  }
  static NodeSignals with_memory(Bytes left) {
    return {.memory_capacity = kMemory, .batch_memory = left};
  }
  static NodeSignals with_cpu(std::int64_t used) {
    return {.cpu_capacity = MilliCpu{16'000}, .cpu_used = MilliCpu{used}};
  }

  Instant now{1000s};
  BatchResources batch{0.2};
};

TEST_F(Batch, MemoryIsOfferedInWholeSteps) {
  pass(1s, NodeSignals{.memory_capacity = kMemory});
  EXPECT_EQ(batch.memory(), 0_B) << "unknown is nothing";
  pass(1s, with_memory(52_GiB));
  EXPECT_EQ(batch.memory(), 50_GiB);
  pass(1s, with_memory(49_GiB));
  EXPECT_EQ(batch.memory(), 45_GiB) << "less at once";
  pass(5min - 2s, with_memory(90_GiB));
  EXPECT_EQ(batch.memory(), 45_GiB) << "more only after a while";
  pass(2s, with_memory(90_GiB));
  EXPECT_EQ(batch.memory(), 90_GiB);
  pass(1min, NodeSignals{.memory_capacity = kMemory});
  EXPECT_EQ(batch.memory(), 90_GiB) << "unknown changes nothing";
  pass(10min, with_memory(500_GiB));
  EXPECT_EQ(batch.memory(), 100_GiB) << "never more than there is";
}

TEST_F(Batch, IsTakenBackAtOnceAndForAWhile) {
  NodeSignals signals = with_memory(50_GiB);
  pass(1s, signals);
  ASSERT_EQ(batch.memory(), 50_GiB);
  NodeSignals contended = signals;
  contended.memory_contention = 0.19;
  pass(1s, contended);
  EXPECT_EQ(batch.memory(), 50_GiB);
  contended.memory_contention = 0.2;
  pass(1s, contended);
  EXPECT_EQ(batch.memory(), 0_B);
  pass(5min - 2s, signals);
  EXPECT_EQ(batch.memory(), 0_B);
  pass(3s, signals);
  EXPECT_EQ(batch.memory(), 50_GiB);
  signals.hard_threshold = "nodefs.available";
  pass(1s, signals);
  EXPECT_EQ(batch.memory(), 0_B);
}

TEST_F(Batch, ContentionOfTheOtherResourceTakesNothing) {
  NodeSignals signals = with_memory(50_GiB);
  signals.cpu_contention = 0.9;
  pass(1min, signals);
  EXPECT_EQ(batch.memory(), 50_GiB);
}

TEST_F(Batch, CpuIsWhatTheHighestMinuteLeaves) {
  pass(15min, with_cpu(2000));
  EXPECT_EQ(batch.cpu().count, 0) << "a quarter of an hour must be known";
  pass(2min, with_cpu(4000));
  pass(3min, with_cpu(1000));
  // 16,000 - 1.1 × 4,000 = 11,600, in steps of 800.
  EXPECT_EQ(batch.cpu().count, 11'200);
  pass(62min, with_cpu(1000));
  EXPECT_EQ(batch.cpu().count, 14'400) << "the highest minute is over an hour ago";
  NodeSignals busy = with_cpu(1000);
  busy.cpu_contention = 0.5;
  pass(1s, busy);
  EXPECT_EQ(batch.cpu().count, 0);
}

TEST_F(Batch, SilenceTakesAllBack) {
  pass(1s, with_memory(50_GiB));
  pass(10s, std::nullopt);
  EXPECT_EQ(batch.memory(), 50_GiB);
  pass(1s, std::nullopt);
  EXPECT_EQ(batch.memory(), 0_B);
  pass(1min, with_memory(50_GiB));
  EXPECT_EQ(batch.memory(), 0_B);
}

// Each retraction lasts, so that a node at the limit is not written all the time.
TEST_F(Batch, TheWorstLoadIsTakenBackOnceInFiveMinutes) {
  NodeSignals contended = with_memory(50_GiB);
  contended.memory_contention = 1;
  int retractions = 0;
  for (int second = 0; second < 3600; ++second) {
    const bool offered = batch.memory().count > 0;
    pass(1s, offered ? contended : with_memory(50_GiB));
    retractions += offered && batch.memory().count == 0 ? 1 : 0;
  }
  EXPECT_GE(retractions, 11);
  EXPECT_LE(retractions, 12);
}

}  // namespace
}  // namespace headroom::kube
