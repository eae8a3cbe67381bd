// SPDX-License-Identifier: Apache-2.0
// The status document: what is known, and null for what is not.
#include "report/status/status_json.h"

#include "report/sample.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

using namespace headroom::test;
using Json = nlohmann::ordered_json;

TEST(StatusJson, HasSignalsThresholdsAndConditions) {
  const Json status = status_json(sample_node(), sample_cgroups(), nullptr);
  EXPECT_EQ(status["mode"], "enforce");
  EXPECT_EQ(status["conditions"]["MemoryPressure"], true);
  ASSERT_EQ(status["signals"].size(), 2u) << "a signal without a reading is not listed";
  EXPECT_EQ(status["signals"][0]["available"], 200 << 20);
  ASSERT_EQ(status["thresholds"].size(), 3u);
  EXPECT_EQ(status["thresholds"][0]["forecast_seconds"], 2.5);
  EXPECT_EQ(status["thresholds"][0]["below_for_seconds"], nullptr);
  EXPECT_EQ(status["thresholds"][1]["kind"], "soft");
  EXPECT_EQ(status["thresholds"][1]["below_for_seconds"], 2.0);
  EXPECT_EQ(status["thresholds"][2]["limit"], nullptr);
  EXPECT_EQ(status["sources"], Json({{"memory_usage", "bpf"}, {"psi", "files"}}));
}

TEST(StatusJson, SwapIsNullWhereThereIsNone) {
  NodeView node = sample_node();
  EXPECT_EQ(status_json(node, sample_cgroups(), nullptr)["swap"], nullptr);
  node.swap_room = SwapRoom{.available = 120, .gain = 100, .bound = SwapRoom::Bound::kRoom};
  const Json swap = status_json(node, sample_cgroups(), nullptr)["swap"];
  EXPECT_EQ(swap["available"], 120);
  EXPECT_EQ(swap["gain"], 100);
  EXPECT_EQ(swap["bound"], "room");
  EXPECT_EQ(swap["in_force"], false);
}

TEST(StatusJson, AnUnknownReadingIsNull) {
  const Json pods = status_json(sample_node(), sample_cgroups(), nullptr)["pods"];
  ASSERT_EQ(pods.size(), 3u);
  EXPECT_EQ(pods[0]["name"], "hog");
  EXPECT_TRUE(pods[0]["cpu_ns"].is_number());
  EXPECT_EQ(pods[1]["memory_waiting_ns"], nullptr);
  EXPECT_EQ(pods[1]["limit"], nullptr);
  EXPECT_EQ(pods[2]["working_set"], nullptr);
  EXPECT_EQ(pods[2]["over_request"], nullptr);
  EXPECT_EQ(pods[2]["state"], "critical");
}

TEST(StatusJson, APodsStallsAreThoseOfItsCgroupsByCause) {
  NodeView node = sample_node();
  node.waits.throttles.reset();
  const Json status = status_json(node, sample_cgroups(), nullptr);
  const Json& hog = status["pods"][0];
  EXPECT_EQ(hog["stalls"]["limit"]["ns"], 2'500'000'000);
  EXPECT_EQ(hog["stalls"]["limit"]["count"], 100);
  EXPECT_EQ(hog["stalls"]["limit"]["p99_ns"], 131'072'000) << "below 2^17 us";
  EXPECT_FALSE(hog["stalls"].contains("high")) << "never was";
  EXPECT_EQ(hog["throttle_waits"], nullptr);
  EXPECT_EQ(status["pods"][1]["throttle_waits"]["count"], 8);
  EXPECT_EQ(status["pods"][2]["stalls"], Json::object());
  EXPECT_EQ(status["waits"]["throttled"], nullptr) << "the watch is off";
  EXPECT_EQ(status["programs"]["throttle"]["loaded"], false);
  EXPECT_EQ(status["counters"]["kernel_oom_kills"]["limit"], 2);
}

TEST(StatusJson, AfterALossItIsUnknownWhetherAPodWithoutStallsWaited) {
  CgroupTable cgroups = sample_cgroups();
  cgroups.stalls.lost = 1;
  const Json pods = status_json(sample_node(), cgroups, nullptr)["pods"];
  EXPECT_EQ(pods[0]["stalls"]["limit"]["count"], 100);
  EXPECT_EQ(pods[2]["stalls"], nullptr);
  cgroups.stalls = {};
  EXPECT_EQ(status_json(sample_node(), cgroups, nullptr)["pods"][0]["stalls"], nullptr)
      << "they are not watched";
}

TEST(StatusJson, WaitsForACpuAreByCauseAndByPair) {
  const Json status = status_json(sample_node(), sample_cgroups(), nullptr);
  EXPECT_EQ(status["pods"][0]["cpu_waits"]["quota"], 1'500'000'000);
  EXPECT_EQ(status["pods"][0]["cpu_waits"]["cpuset"], 0);
  EXPECT_EQ(status["pods"][1]["cpu_waits"]["weight"], 40'000'000);
  EXPECT_EQ(status["pods"][2]["cpu_waits"], nullptr) << "unknown";
  const Json& pairs = status["waits"]["cpu_pairs"];
  ASSERT_EQ(pairs.size(), 2u) << "the third pod is gone";
  EXPECT_EQ(pairs[0]["holder"]["name"], "hog");
  EXPECT_EQ(pairs[0]["waiter"]["name"], "web");
  EXPECT_EQ(pairs[0]["ns"], 30'000'000);
  EXPECT_EQ(pairs[1]["holder"], nullptr) << "outside pods";
  EXPECT_EQ(status["waits"]["memory_pairs"], Json::array());
}

TEST(StatusJson, AVictimsStateIsItsPhase) {
  NodeView node = sample_node();
  Victim victim;
  victim.cgroup = CgroupId{3};
  victim.phase = Victim::Phase::kTerminating;
  node.victims.push_back(victim);
  EXPECT_EQ(status_json(node, sample_cgroups(), nullptr)["pods"][0]["state"], "terminating");
}

TEST(StatusJson, OfEachQosClassTheTopPodsAndAllVictimsAreListed) {
  CgroupTable table = sample_cgroups();
  table.pods[1].pod = sample_pod("web", QosClass::kBestEffort);
  NodeView node = sample_node();
  const auto names = [&] {
    std::vector<std::string> found;
    const Json status = status_json(node, table, nullptr, 1);
    for (const Json& pod : status["pods"])
      found.push_back(pod["name"]);
    return found;
  };
  EXPECT_EQ(names(), (std::vector<std::string>{"web", "quiet"})) << "more over its request";
  EXPECT_EQ(status_json(node, table, nullptr, 1)["qos_classes"][0]["pods"], 2);
  Victim victim;
  victim.cgroup = CgroupId{3};
  victim.phase = Victim::Phase::kKilled;
  node.victims.push_back(victim);
  EXPECT_EQ(names(), (std::vector<std::string>{"hog", "web", "quiet"}));
}

TEST(StatusJson, QosGroupsCountAllPodsAndTheirExcess) {
  const Json classes = status_json(sample_node(), sample_cgroups(), nullptr)["qos_classes"];
  ASSERT_EQ(classes.size(), 3u);
  EXPECT_EQ(classes[0]["qos"], "BestEffort");
  EXPECT_EQ(classes[0]["pods"], 1);
  EXPECT_EQ(classes[0]["over_request"],
            status_json(sample_node(), sample_cgroups(), nullptr)["pods"][0]["over_request"]);
  EXPECT_EQ(classes[2]["over_request"], 0) << "not known";
}

// The kubelet's order for memory: over the request first, then lower priority, then furthest over.
TEST(StatusJson, TheOrderOfEvictionIsThatOfTheJudge) {
  NodeView node = sample_node();
  CgroupTable table = sample_cgroups();  // hog: priority 0; web: priority 100; quiet: critical
  const auto order = [&](std::size_t pod) {
    return status_json(node, table, nullptr)["pods"][pod]["eviction_order"];
  };
  EXPECT_EQ(order(0), 1);
  EXPECT_EQ(order(1), 2);
  EXPECT_EQ(order(2), nullptr) << "critical";
  table.pods[0].memory_request = Bytes{std::int64_t{1} << 50};
  EXPECT_EQ(order(0), 2) << "within its request";
  EXPECT_EQ(order(1), 1);
  table.pods[1].description = PodDescription::kAwaited;
  EXPECT_EQ(order(1), 2) << "a pod whose description is awaited comes last";
  Victim victim;
  victim.cgroup = table.pods[0].cgroup;
  node.victims.push_back(victim);
  EXPECT_EQ(order(0), nullptr) << "being evicted";
  EXPECT_EQ(order(1), 1);
  table.records[2].populated = 0;
  EXPECT_EQ(order(1), nullptr) << "without a process";
}

TEST(StatusJson, BeforeTheFirstReadingItIsEmpty) {
  EXPECT_EQ(status_text(PublishedViews(), nullptr), "{}");
}

}  // namespace
}  // namespace headroom::report
