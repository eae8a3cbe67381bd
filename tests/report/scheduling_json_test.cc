// SPDX-License-Identifier: Apache-2.0
// The document from which headroom-kube advises Kubernetes' scheduler.
#include "report/status/scheduling_json.h"

#include "report/sample.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

using namespace headroom::test;
using Json = nlohmann::ordered_json;

ThresholdView hard(Signal signal, std::int64_t available, std::int64_t limit,
                   std::optional<Duration> time_to = {}) {
  return {.signal = signal,
          .limit = limit,
          .available = available,
          .met = available < limit,
          .time_to = time_to};
}

class SchedulingJsonTest : public testing::Test {
 protected:
  Json json() {
    views.node.publish([this](NodeView& next, const NodeView*) { next = node; });
    return scheduling_json(views);
  }

  PublishedViews views;
  NodeView node = sample_node();
};

TEST_F(SchedulingJsonTest, IsNullBeforeTheFirstTurn) {
  EXPECT_EQ(scheduling_json(views), nullptr);
}

TEST_F(SchedulingJsonTest, WhatIsUnknownIsNull) {
  node.thresholds.clear();
  node.observations = {};
  node.status = nullptr;
  EXPECT_EQ(
      json(),
      (Json{{"at_ns", node.at.time_since_epoch().count()},
            {"contention", {{"cpu", nullptr}, {"memory", nullptr}}},
            {"hard_threshold", nullptr},
            {"shortage_seconds", nullptr},
            {"memory",
             {{"capacity", nullptr}, {"left", nullptr}, {"growth", nullptr}, {"batch", nullptr}}},
            {"cpu", {{"capacity_milli", nullptr}, {"used_milli", nullptr}}}}));
}

TEST_F(SchedulingJsonTest, ContentionIsTheShareThatWasLost) {
  of(node.observations, Signal::kCpuPressure) =
      Observation{.available = 750'000, .capacity = 1'000'000, .at = node.at};
  of(node.observations, Signal::kMemoryPressure) =
      Observation{.available = 1'000'000, .capacity = 1'000'000, .at = node.at};
  EXPECT_EQ(json()["contention"]["cpu"], 0.25);
  EXPECT_EQ(json()["contention"]["memory"], 0);
}

TEST_F(SchedulingJsonTest, TheNearestHardThresholdCounts) {
  using std::chrono::seconds;
  node.thresholds = {hard(Signal::kMemoryAvailable, 500, 100, seconds(60)),
                     hard(Signal::kKernelMemAvailable, 300, 50, seconds(20)),
                     hard(Signal::kNodeFsAvailable, 10, 1, seconds(30)),
                     hard(Signal::kCpuPressure, 1, 2, seconds(1))};
  node.thresholds.push_back(hard(Signal::kMemoryAvailable, 500, 400, seconds(5)));
  node.thresholds.back().grace = seconds(30);  // a soft one
  const Json document = json();
  EXPECT_EQ(document["hard_threshold"], nullptr) << "of time lost, no amount is left";
  EXPECT_EQ(document["shortage_seconds"], 20);
  EXPECT_EQ(document["memory"]["left"], 250);
  node.thresholds.push_back(hard(Signal::kPidAvailable, 1, 2));
  EXPECT_EQ(json()["hard_threshold"], "pid.available");
}

TEST_F(SchedulingJsonTest, GrowthIsTheForecastLessTheUse) {
  CgroupTable table = sample_cgroups();
  // The use of one pod is unknown: so is that of all.
  views.cgroups.publish([&](CgroupTable& next, const CgroupTable*) { next = table; });
  views.memory_forecasts.publish([](PeakForecast::Records& next, const PeakForecast::Records*) {
    next = PeakForecast::Records(kPeakPredictors.size());
    next[0].forecast = 5e9;
  });
  EXPECT_EQ(json()["memory"]["growth"], nullptr);
  table.pods.resize(1);
  views.cgroups.publish([&](CgroupTable& next, const CgroupTable*) { next = table; });
  const auto record = std::ranges::find(table.records, table.pods[0].cgroup.value, &hr_record::id);
  ASSERT_NE(record, table.records.end());
  const auto used = working_set(*record);
  ASSERT_TRUE(used);
  EXPECT_EQ(json()["memory"]["growth"], 5'000'000'000 - used->count);
  views.memory_forecasts.publish([](PeakForecast::Records& next, const PeakForecast::Records*) {
    next = PeakForecast::Records(kPeakPredictors.size());
    next[0].forecast = 1;
  });
  EXPECT_EQ(json()["memory"]["growth"], 0) << "less than is in use";
}

TEST_F(SchedulingJsonTest, BatchPodsDoNotCountAgainstThemselves) {
  node.thresholds = {hard(Signal::kMemoryAvailable, 9'000'000'000, 1'000'000'000)};
  CgroupTable table = sample_cgroups();
  table.pods.resize(1);
  const auto record = std::ranges::find(table.records, table.pods[0].cgroup.value, &hr_record::id);
  ASSERT_NE(record, table.records.end());
  const auto place = static_cast<std::size_t>(record - table.records.begin());
  table.usage_nanocores.assign(table.records.size(), HR_UNKNOWN);
  const auto root = std::ranges::find(table.records, hr_u64{0}, &hr_record::parent_id);
  ASSERT_NE(root, table.records.end());
  table.usage_nanocores[static_cast<std::size_t>(root - table.records.begin())] = 3'000'000'000;
  node.status = sample_status();
  const auto publish = [&] {
    views.cgroups.publish([&](CgroupTable& next, const CgroupTable*) { next = table; });
  };
  views.memory_forecasts.publish([&](PeakForecast::Records& next, const PeakForecast::Records*) {
    next = PeakForecast::Records(kPeakPredictors.size());
    next[0].forecast = static_cast<double>(working_set(*record)->count + 2'000'000'000);
  });
  publish();
  EXPECT_EQ(json()["memory"]["batch"], 6'000'000'000) << "8 GB are left, and 2 GB are forecast";
  EXPECT_EQ(json()["cpu"]["capacity_milli"], 3500);
  EXPECT_EQ(json()["cpu"]["used_milli"], 3000);
  auto pod = std::make_shared<Pod>(*table.pods[0].pod);
  pod->containers.push_back({.name = "job", .requests = {}, .limits = {}});
  pod->containers.back().requests.emplace("headroom.io/batch-cpu", *Quantity::parse("500"));
  table.pods[0].pod = pod;
  publish();
  EXPECT_EQ(json()["memory"]["batch"], 6'000'000'000 + working_set(*record)->count);
  EXPECT_EQ(json()["cpu"]["used_milli"], nullptr) << "that of the batch pod is unknown";
  table.usage_nanocores[place] = 1'200'000'000;
  publish();
  EXPECT_EQ(json()["cpu"]["used_milli"], 1800);
}

}  // namespace
}  // namespace headroom::report
