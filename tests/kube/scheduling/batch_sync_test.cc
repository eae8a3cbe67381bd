// SPDX-License-Identifier: Apache-2.0
// The batch resources that a node is offered with, in time and after a restart.
#include "kube/scheduling/scheduled_node.h"

namespace headroom::kube {
namespace {

using namespace scheduling_test;

TEST(SchedulingRequests, BatchResourcesAreOfCapacityAndAllocatable) {
  const BatchAmounts batch{.memory = {1 << 30}, .cpu = {1500}};
  const HttpRequest request = scheduling_apply("n1", std::nullopt, batch, kTime);
  const Json status = Json::parse(request.body)["status"];
  EXPECT_EQ(status["capacity"],
            (Json{{"headroom.io/batch-memory", "1073741824"}, {"headroom.io/batch-cpu", "1500"}}));
  EXPECT_EQ(status["allocatable"], status["capacity"]);
  EXPECT_FALSE(status.contains("conditions"));
  EXPECT_TRUE(has_batch(Json{{"status", status}}.dump(), batch));
  Json zeroed = status;  // as a kubelet does at its registration
  zeroed["allocatable"]["headroom.io/batch-cpu"] = "0";
  Json shorter = status;  // as the API server writes it
  shorter["capacity"]["headroom.io/batch-memory"] = "1Gi";
  EXPECT_TRUE(has_batch(Json{{"status", shorter}}.dump(), batch));
  for (const Json& other : {Json{{"status", zeroed}}, Json{{"status", 7}}, Json::object(),
                            Json{{"status", {{"capacity", status["capacity"]}}}}})
    EXPECT_FALSE(has_batch(other.dump(), batch)) << other;
}

class BatchSyncTest : public SchedulingSyncTest {
 protected:
  static NodeSignals with_memory(Bytes left) {
    return {.memory_contention = 0, .memory_capacity = Bytes{100}, .batch_memory = left};
  }
  const SchedulingOptions batch{.node_name = "n1", .batch = true};
};

TEST_F(BatchSyncTest, WhatIsLeftIsOfferedAndTakenBackAtOnce) {
  SchedulingSync sync(batch, {});
  run(sync, 15s, with_memory({52}));
  EXPECT_EQ(offered(), "50");
  run(sync, 10s, with_memory({47}));
  EXPECT_EQ(offered(), "45");
  NodeSignals contended = with_memory({47});
  contended.memory_contention = 0.5;
  run(sync, 1s, contended);
  EXPECT_EQ(offered(), "0") << "without waiting for the next ten seconds";
  const std::size_t before = writes.size();
  run(sync, 4min, contended);
  EXPECT_LE(writes.size(), before + 1) << "only a heartbeat";
}

TEST_F(BatchSyncTest, AFailingRetractionIsRepeated) {
  SchedulingSync sync(batch, {});
  run(sync, 15s, with_memory({52}));
  NodeSignals contended = with_memory({52});
  contended.memory_contention = 0.5;
  failing = "no connection";
  run(sync, 1min, contended);
  EXPECT_EQ(offered(), "50");
  EXPECT_GE(writes.size(), 8u) << "not bound to ten seconds";
  EXPECT_LE(writes.size(), 20u);
  failing.clear();
  run(sync, 11s, contended);
  EXPECT_EQ(offered(), "0");
}

TEST_F(BatchSyncTest, AKubeletThatRegistersAgainIsCorrected) {
  SchedulingSync sync(batch, {});
  run(sync, 15s, with_memory({52}));
  const std::size_t before = writes.size();
  run(sync, 3min, with_memory({52}));
  EXPECT_EQ(writes.size(), before) << "what is correct is only read";
  node_status["capacity"][kBatchMemory] = "0";
  run(sync, 65s, with_memory({52}));
  EXPECT_EQ(offered(), "50");
  EXPECT_EQ(writes.size(), before + 1);
}

TEST_F(BatchSyncTest, AnEarlierOfferIsNotTrusted) {
  node_status = {{"capacity", {{kBatchMemory, "90"}}}, {"allocatable", Json::object()}};
  SchedulingSync sync(batch, {});
  run(sync, 15s, std::nullopt);
  EXPECT_EQ(offered(), "0");
}

// A program that was killed could not take its offer back.
TEST_F(BatchSyncTest, AKilledProgramsOfferIsTakenBackAtOnceWhenTheNodeNeedsIt) {
  SchedulingState saved;
  {
    SchedulingSync killed(batch, {});
    run(killed, 15s, with_memory({52}));
    saved = *scheduling_state_of(as_text(killed.state()));
  }
  EXPECT_EQ(saved.batch.memory, Bytes{50});
  ASSERT_EQ(offered(), "50");
  NodeSignals contended = with_memory({52});
  contended.memory_contention = 0.5;
  SchedulingSync sync(batch, saved);
  run(sync, 1s, contended);
  EXPECT_EQ(offered(), "0") << "not after the first ten seconds";
  EXPECT_EQ(sync.state().batch, BatchAmounts{});
  const std::size_t before = writes.size();
  for (int i = 0; i < 20; ++i) {  // it is killed again and again
    SchedulingSync next(batch, sync.state());
    run(next, 1s, contended);
  }
  EXPECT_EQ(writes.size(), before) << "nothing is offered any more";
}

TEST_F(BatchSyncTest, AKilledProgramsOfferOfCpuIsTakenBackUntilTheUseIsKnownAgain) {
  node_status = {{"capacity", {{kBatchMemory, "50"}, {kBatchCpu, "1500"}}},
                 {"allocatable", Json::object()}};
  SchedulingSync sync(batch, {.batch = {.memory = {50}, .cpu = {1500}}});
  run(sync, 1s, with_memory({52}));
  EXPECT_EQ(node_status["capacity"][kBatchCpu], "0");
  EXPECT_EQ(offered(), "50") << "it is as left as before";
}

TEST_F(BatchSyncTest, WhatIsAboutToBeOfferedIsSavedBefore) {
  SchedulingSync sync(batch, {});
  sync.observe(with_memory({52}), now, kWallTime);
  EXPECT_EQ(sync.state().batch.memory, Bytes{50});
  run(sync, 15s, with_memory({52}));
  EXPECT_EQ(sync.state().batch.memory, Bytes{50});
  sync.set_retracted();
  EXPECT_EQ(sync.state().batch, BatchAmounts{});
}

TEST_F(BatchSyncTest, TheEndTakesAllBack) {
  SchedulingSync sync(batch, {});
  run(sync, 15s, with_memory({52}));
  const auto last = sync.last_retraction(kWallTime);
  ASSERT_TRUE(last);
  EXPECT_EQ(Json::parse(last->body)["status"]["capacity"][kBatchMemory], "0");
  SchedulingSync without(options, {});
  EXPECT_FALSE(without.last_retraction(kWallTime));
}

}  // namespace
}  // namespace headroom::kube
