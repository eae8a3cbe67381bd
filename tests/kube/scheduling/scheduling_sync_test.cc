// SPDX-License-Identifier: Apache-2.0
// What is written to the API server for the scheduler, and how often.
#include "kube/scheduling/scheduled_node.h"

namespace headroom::kube {
namespace {

using namespace scheduling_test;

constexpr auto kCpu = static_cast<std::size_t>(Advice::kCpuContention);

AdviceStates all_known(bool cpu = false) {
  AdviceStates states;
  states.fill({.holds = false, .since = kTime, .known = true});
  states[kCpu].holds = cpu;
  return states;
}

TEST(SchedulingRequests, SoftTaintsAreAddedBesideThoseOfOthers) {
  const Json others{{{"key", "dedicated"}, {"value", "gpu"}, {"effect", "NoExecute"}},
                    {{"key", "headroom.io/cpu-pressure"}, {"effect", "NoSchedule"}}};
  const auto patch = soft_taints_patch("n1", node_with(others), all_known(true));
  ASSERT_TRUE(patch && *patch);
  EXPECT_EQ((*patch)->path, "/api/v1/nodes/n1?fieldManager=headroom");
  const Json body = Json::parse((*patch)->body);
  EXPECT_EQ(body["metadata"]["resourceVersion"], "7");
  ASSERT_EQ(body["spec"]["taints"].size(), 3u);
  EXPECT_EQ(body["spec"]["taints"][0], others[0]);
  EXPECT_EQ(body["spec"]["taints"][1], others[1]) << "pressure is another taint";
  EXPECT_EQ(body["spec"]["taints"][2],
            (Json{{"key", "headroom.io/cpu-contention"}, {"effect", "PreferNoSchedule"}}));
}

TEST(SchedulingRequests, TaintsThatAreCorrectOrUnknownStay) {
  const Json ours{{{"key", "headroom.io/cpu-contention"}, {"effect", "PreferNoSchedule"}}};
  EXPECT_FALSE(*soft_taints_patch("n1", node_with(ours), all_known(true)));
  AdviceStates unknown = all_known(true);
  for (AdviceState& state : unknown)
    state.known = false;
  EXPECT_FALSE(*soft_taints_patch("n1", node_with(ours), unknown));
  EXPECT_FALSE(*soft_taints_patch("n1", node_with(Json::array()), unknown));
  EXPECT_TRUE(*soft_taints_patch("n1", node_with(ours), all_known(false)));
  EXPECT_TRUE(*soft_taints_patch("n1", node_with(ours), std::nullopt)) << "turned off";
  EXPECT_FALSE(soft_taints_patch("n1", "{}", all_known()));
}

TEST(SchedulingRequests, ConditionsAreAppliedByAManagerOfTheirOwn) {
  AdviceStates states = all_known(true);
  states[0].known = false;
  const HttpRequest request = scheduling_apply("n1", states, std::nullopt, kTime);
  EXPECT_EQ(request.path, "/api/v1/nodes/n1/status?fieldManager=headroom-scheduling&force=true");
  const Json conditions = Json::parse(request.body)["status"]["conditions"];
  ASSERT_EQ(conditions.size(), 3u);
  EXPECT_EQ(conditions[0]["type"], "HeadroomMemoryContention");
  EXPECT_EQ(conditions[0]["status"], "Unknown");
  EXPECT_EQ(conditions[1]["type"], "HeadroomCPUContention");
  EXPECT_EQ(conditions[1]["status"], "True");
  EXPECT_EQ(conditions[2]["status"], "False");
  EXPECT_FALSE(Json::parse(scheduling_apply("n1", std::nullopt, std::nullopt, kTime).body)
                   .contains("status"));
}

TEST(SchedulingState, IsTheSameAfterARestart) {
  const SchedulingState state{.left = {true, false, true},
                              .advice = all_known(true),
                              .batch = {.memory = {1 << 30}, .cpu = {1500}}};
  const auto again = scheduling_state_of(as_text(state));
  ASSERT_TRUE(again) << again.error().what;
  EXPECT_EQ(*again, state);
  for (const char* text : {"", "[]", "{}", R"({"version":1,"crc32c":0,"value":{}})"})
    EXPECT_FALSE(scheduling_state_of(text)) << text;
  std::string damaged = as_text(state);
  damaged[damaged.find("1500")] = '2';
  EXPECT_FALSE(scheduling_state_of(damaged)) << damaged;
}

TEST_F(SchedulingSyncTest, WritesNothingBeforeItKnows) {
  SchedulingSync sync(options, {});
  run(sync, 25s, 0.5);
  EXPECT_TRUE(writes.empty());
  run(sync, 30s, 0.5);
  EXPECT_EQ(taints,
            (Json{{{"key", "headroom.io/cpu-contention"}, {"effect", "PreferNoSchedule"}}}));
  EXPECT_EQ(count("/status"), 1u);
  expect_bounded();
}

TEST_F(SchedulingSyncTest, ACalmNodeIsWrittenEveryFiveMinutes) {
  SchedulingSync sync(options, {});
  run(sync, 1h, 0);
  EXPECT_EQ(count("/status"), 12u);
  EXPECT_EQ(writes.size(), 12u) << "taints that are correct are only read";
}

TEST_F(SchedulingSyncTest, TheWorstLoadIsBounded) {
  SchedulingSync sync(options, {});
  for (int i = 0; i < 3600; ++i)
    run(sync, 1s, sync.state().advice[kCpu].holds ? 0 : 1);
  EXPECT_GT(writes.size(), 20u);
  EXPECT_LT(writes.size(), 150u);
  expect_bounded();
}

TEST_F(SchedulingSyncTest, AFailureIsRepeatedWithinTheSameBound) {
  SchedulingSync sync(options, {});
  failing = "no connection";
  run(sync, 5min, 0.5);
  EXPECT_GT(writes.size(), 10u);
  expect_bounded();
  failing.clear();
  run(sync, 30s, 0.5);
  EXPECT_EQ(taints.size(), 1u);
}

TEST_F(SchedulingSyncTest, ARefusalIsRepeatedAfterAMinute) {
  SchedulingSync sync(options, {});
  status = 403;
  run(sync, 10min, 0.5);
  EXPECT_LE(writes.size(), 22u) << "two parts, once a minute each";
  expect_bounded();
}

TEST_F(SchedulingSyncTest, ATaintThatAnotherClientRemovedComesBack) {
  SchedulingSync sync(options, {});
  run(sync, 1min, 0.5);
  ASSERT_EQ(taints.size(), 1u);
  taints = Json::array();
  run(sync, 75s, 0.5);
  EXPECT_EQ(taints.size(), 1u);
}

TEST_F(SchedulingSyncTest, TurnedOffItTakesBackWhatItPut) {
  SchedulingSync sync(options, {});
  run(sync, 1min, 0.5);
  ASSERT_EQ(taints.size(), 1u);
  SchedulingSync off({.node_name = "n1"}, sync.state());
  EXPECT_FALSE(off.is_finished());
  run(off, 30s, 0.5);
  EXPECT_TRUE(off.is_finished());
  EXPECT_TRUE(taints.empty());
  EXPECT_FALSE(Json::parse(writes.back().request.body).contains("status"));
  expect_bounded();
}

TEST_F(SchedulingSyncTest, TheAnnotationFollowsTheReadings) {
  using namespace headroom::literals;
  NodeSignals signals{.memory_contention = 0.02,
                      .cpu_contention = 0.1,
                      .memory_capacity = 8_GiB,
                      .memory_left = 4_GiB,
                      .memory_growth = 2_GiB};
  SchedulingSync sync(annotated, {});
  run(sync, 25s, signals);
  EXPECT_TRUE(writes.empty()) << "nothing is settled yet";
  run(sync, 10s, signals);
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_EQ(writes[0].request.path, "/api/v1/nodes/n1?fieldManager=headroom-scheduling");
  EXPECT_EQ(summary().cpu_contention, 0.1);
  EXPECT_EQ(summary().memory_left, 0.25) << "what is left when the pods have grown";
  EXPECT_EQ(summary().shortage_expected, false);
  EXPECT_EQ(summary().hard_threshold, "");
  signals.hard_threshold = "memory.available";
  run(sync, 10s, signals);
  EXPECT_EQ(summary().hard_threshold, "memory.available") << "a fact, in the next ten seconds";
  const std::size_t before = writes.size();
  run(sync, 10min, signals);
  // Every half minute, and once more when the shortage is expected.
  EXPECT_NEAR(static_cast<double>(writes.size() - before), 21, 2);
  signals.hard_threshold.reset();
  run(sync, 25s, signals);
  EXPECT_EQ(summary().hard_threshold, "memory.available") << "it may be met again";
  run(sync, 20s, signals);
  EXPECT_EQ(summary().hard_threshold, "");
  expect_bounded_on_average();
}

TEST_F(SchedulingSyncTest, AHardThresholdIsToldBeforeContentionIsKnown) {
  SchedulingSync sync(annotated, {});
  run(sync, 12s, NodeSignals{.hard_threshold = "memory.available"});
  EXPECT_EQ(summary().hard_threshold, "memory.available");
  EXPECT_FALSE(summary().cpu_contention);
  run(sync, 10s, std::nullopt);
  EXPECT_EQ(summary().hard_threshold, "memory.available");
  run(sync, 1min, 0.1);
  EXPECT_EQ(summary().hard_threshold, "");
  EXPECT_TRUE(summary().cpu_contention);
  expect_bounded();
}

TEST_F(SchedulingSyncTest, WhatSpeaksAgainstTheNodeIsWrittenAtOnce) {
  using namespace headroom::literals;
  NodeSignals signals{
      .memory_contention = 0, .cpu_contention = 0, .memory_capacity = 8_GiB, .memory_left = 6_GiB};
  SchedulingSync sync(annotated, {});
  run(sync, 2min, signals);
  const auto expect_written_after = [&](Duration time, const char* why) {
    const std::size_t before = writes.size();
    run(sync, time, signals);
    EXPECT_EQ(writes.size(), before + 1) << why;
  };
  signals.memory_left = 4_GiB;
  expect_written_after(1s, "a number, after half a minute");
  signals.cpu_contention = 0.3;
  expect_written_after(1s, "contention");
  EXPECT_EQ(summary().cpu_contention, 0.3) << "the latest reading, not the average of a minute";
  signals.hard_threshold = "memory.available";
  run(sync, 8s, signals);
  EXPECT_EQ(summary().hard_threshold, "") << "one write may be early, not two";
  expect_written_after(1s, "the threshold");
  EXPECT_EQ(summary().hard_threshold, "memory.available");
  expect_bounded_on_average();
}

TEST_F(SchedulingSyncTest, ContentionThatEndsIsForgottenSlowly) {
  SchedulingSync sync(annotated, {});
  run(sync, 5min, 0.0);
  run(sync, 5s, 1.0);
  EXPECT_EQ(summary().cpu_contention, 1);
  run(sync, 20s, 0.0);
  EXPECT_EQ(summary().cpu_contention, 1) << "for half a minute";
  run(sync, 15s, 0.0);
  EXPECT_NEAR(summary().cpu_contention.value_or(1), 0.05, 0.02) << "then it is the average";
  expect_bounded();
}

TEST_F(SchedulingSyncTest, ALoadThatComesAndGoesIsWrittenWithinTheBound) {
  SchedulingSync sync(annotated, {});
  for (int i = 0; i < 600; ++i) {
    run(sync, 1s, 1.0);
    run(sync, 2s, 0.0);
  }
  EXPECT_LE(writes.size(), 182u);
  EXPECT_EQ(summary().cpu_contention, 1) << "its worst reading of the last half minute";
  expect_bounded_on_average();
}

TEST_F(SchedulingSyncTest, ACalmNodesAnnotationIsWrittenEveryFiveMinutes) {
  SchedulingSync sync(annotated, {});
  run(sync, 1h, 0.01);
  EXPECT_EQ(writes.size(), 12u);
  EXPECT_LT(kWallTime + 55min, summary().time);
}

TEST_F(SchedulingSyncTest, NumbersThatChangeAreWrittenEveryHalfMinuteAtMost) {
  SchedulingSync sync(annotated, {});
  for (int i = 0; i < 60; ++i) {
    run(sync, 30s, 1.0);
    run(sync, 30s, 0.0);
  }
  EXPECT_GT(writes.size(), 30u);
  EXPECT_LE(writes.size(), 122u);
  expect_bounded();
}

TEST_F(SchedulingSyncTest, TheAnnotationGoesWhenNothingIsKnownAnyMore) {
  SchedulingSync sync(annotated, {});
  run(sync, 1min, 0.1);
  ASSERT_TRUE(annotation.is_string());
  run(sync, 50s, std::nullopt);
  EXPECT_TRUE(annotation.is_string()) << "one answer that is missing says nothing";
  run(sync, 25s, std::nullopt);
  EXPECT_TRUE(annotation.is_null()) << annotation;
  EXPECT_TRUE(Json::parse(writes.back().request.body)["metadata"]["annotations"].contains(
      kSummaryAnnotation));
  run(sync, 1min, 0.1);
  EXPECT_TRUE(annotation.is_string());
  SchedulingSync off({.node_name = "n1"}, sync.state());
  run(off, 20s, 0.1);
  EXPECT_TRUE(annotation.is_null() && off.is_finished());
}

}  // namespace
}  // namespace headroom::kube
