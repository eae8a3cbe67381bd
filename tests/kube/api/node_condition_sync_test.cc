// SPDX-License-Identifier: Apache-2.0
// The node's conditions and taints in the API: ours, and no others.
#include "kube/api/node_condition_sync.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::kube {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

constexpr const char* kSince = "2026-11-20T22:50:00Z";
constexpr const char* kNow = "2026-11-20T23:00:00Z";

NodeConditions calm() {
  NodeConditions conditions;
  conditions.fill(NodeCondition{false, kSince});
  return conditions;
}
NodeConditions pressed() {
  NodeConditions conditions = calm();
  conditions[0].holds = true;
  return conditions;
}

TEST(NodeRequests, WhatHeadroomdWroteDownIsRead) {
  const Json node{
      {"status",
       {{"conditions",
         {{{"type", "MemoryPressure"}, {"status", "True"}, {"lastTransitionTime", kSince}},
          {{"type", "DiskPressure"}, {"status", "False"}, {"lastTransitionTime", kSince}},
          {{"type", "Ready"}, {"status", "True"}}}}}}};
  const auto conditions = conditions_of(node.dump());
  ASSERT_TRUE(conditions);
  EXPECT_EQ((*conditions)[0], (NodeCondition{true, kSince}));
  EXPECT_EQ((*conditions)[1], (NodeCondition{false, kSince}));
  EXPECT_EQ((*conditions)[2].holds, std::nullopt) << "absent is not false";
  for (const char* text : {"", "{}", "[]", "{\"status\":7}"})
    EXPECT_FALSE(conditions_of(text)) << text;
}

TEST(NodeRequests, AnEventIsOfTheNode) {
  const HttpRequest request = condition_event("n1", Condition::kCpuPressure, {true, kSince}, kNow);
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.path, "/api/v1/namespaces/default/events?fieldManager=headroom");
  const Json event = Json::parse(request.body);
  EXPECT_EQ(event["involvedObject"],
            Json::parse(R"({"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "n1"})"));
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["reason"], "HeadroomHasInsufficientCPU");
  EXPECT_EQ(event["message"], "headroomd sees pods wait because the node has no CPU left");
  EXPECT_EQ(event["lastTimestamp"], kNow);
  const HttpRequest calmer = condition_event("n1", Condition::kCpuPressure, {false, kSince}, kNow);
  EXPECT_EQ(Json::parse(calmer.body)["type"], "Normal");
  EXPECT_EQ(Json::parse(calmer.body)["reason"], "HeadroomHasSufficientCPU");
}

TEST(NodeRequests, ConditionsAreAppliedUnderTypesOfOurOwn) {
  NodeConditions conditions = pressed();
  conditions[2].holds.reset();
  const HttpRequest request = conditions_apply("n1", conditions, kNow);
  EXPECT_EQ(request.method, "PATCH");
  EXPECT_EQ(request.path, "/api/v1/nodes/n1/status?fieldManager=headroom&force=true");
  EXPECT_EQ(request.headers.front().second, "application/apply-patch+yaml");
  const Json list = Json::parse(request.body)["status"]["conditions"];
  ASSERT_EQ(list.size(), 4U);
  EXPECT_EQ(list[0], Json::parse(R"({"type": "HeadroomMemoryPressure", "status": "True",
    "lastHeartbeatTime": "2026-11-20T23:00:00Z", "lastTransitionTime": "2026-11-20T22:50:00Z",
    "reason": "HeadroomHasInsufficientMemory",
    "message": "headroomd sees insufficient memory available"})"));
  EXPECT_EQ(list[1]["status"], "False");
  EXPECT_EQ(list[2]["status"], "Unknown");
  EXPECT_EQ(list[3]["type"], "HeadroomCPUPressure");
}

TEST(NodeRequests, AConditionThatAnOlderHeadroomdDoesNotKnowIsLeftOut) {
  NodeConditions conditions = pressed();
  conditions[3] = {};
  const HttpRequest request = conditions_apply("n1", conditions, kNow);
  EXPECT_EQ(Json::parse(request.body)["status"]["conditions"].size(), 3U);
}

TEST(NodeRequests, TakenBackNothingOfOursIsOwned) {
  EXPECT_FALSE(Json::parse(conditions_apply("n1", std::nullopt, kNow).body).contains("status"));
}

Json node_with(const Json& taints) {
  return {{"metadata", {{"resourceVersion", "77"}}}, {"spec", {{"taints", taints}}}};
}
const Json kOthers{{"key", "dedicated"}, {"value", "gpu"}, {"effect", "NoExecute"}};
const Json kOurs{
    {"key", "headroom.io/memory-pressure"}, {"effect", "NoSchedule"}, {"timeAdded", kSince}};

struct TaintCase {
  const char* name;
  Json there;
  std::optional<NodeConditions> conditions;
  std::optional<std::size_t> wanted;  // how many are sent; nothing: nothing is
};

TEST(NodeRequests, TaintsArePutRightUnderTheVersionTheyHad) {
  NodeConditions unknown = calm();
  unknown[0].holds.reset();
  const TaintCase cases[] = {
      {"added beside another's", Json::array({kOthers}), pressed(), 2},
      {"there already", Json::array({kOurs, kOthers}), pressed(), std::nullopt},
      {"taken off", Json::array({kOthers, kOurs}), calm(), 1},
      {"nothing to take off", Json::array({kOthers}), calm(), std::nullopt},
      {"not known: it stays", Json::array({kOurs}), unknown, std::nullopt},
      {"not known: none is put", Json::array(), unknown, std::nullopt},
      {"not wanted any more", Json::array({kOurs, kOthers}), std::nullopt, 1},
  };
  for (const TaintCase& row : cases) {
    const auto patch = taints_patch("n1", node_with(row.there).dump(), row.conditions);
    ASSERT_TRUE(patch) << row.name;
    ASSERT_EQ(patch->has_value(), row.wanted.has_value()) << row.name;
    if (!row.wanted) continue;
    const Json body = Json::parse((**patch).body);
    EXPECT_EQ(body["metadata"]["resourceVersion"], "77") << row.name;
    EXPECT_EQ(body["spec"]["taints"].size(), *row.wanted) << row.name;
    EXPECT_EQ(body["spec"]["taints"][0], kOthers) << row.name << ": others' stay as they are";
  }
  EXPECT_TRUE((*taints_patch("n1", R"({"metadata":{"resourceVersion":"1"},"spec":{}})", pressed()))
                  .has_value());
  for (const char* text : {"", "{}", "{\"metadata\":{}}", "[]", "{\"metadata\":7}"})
    EXPECT_FALSE(taints_patch("n1", text, pressed())) << text;
}

// An API server that has what it was last sent.
class NodeConditionSyncTest : public ::testing::Test {
 protected:
  NodeConditionSync teller(bool conditions, bool taints, PublishedOnNode published = {}) {
    return NodeConditionSync({.node_name = "n1", .conditions = conditions, .taints = taints},
                             published);
  }
  NodeSyncResult run_once(NodeConditionSync& node) {
    return node.run_once(now_, kNow, 0.0,
                         [this](const HttpRequest& request) -> Result<HttpResponse> {
                           asked_.push_back(request.method);
                           if (request.method == "GET")
                             return HttpResponse{.status = 200, .body = node_};
                           return HttpResponse{.status = status_};
                         });
  }
  std::vector<std::string> asked() { return std::exchange(asked_, {}); }
  using Asked = std::vector<std::string>;

  Instant now_{1000s};
  long status_ = 200;
  std::string node_ = node_with(Json::array()).dump();
  std::vector<std::string> asked_;
};

TEST_F(NodeConditionSyncTest, NothingIsReportedBeforeItIsKnown) {
  NodeConditionSync node = teller(true, true);
  EXPECT_FALSE(node.due());
  run_once(node);
  EXPECT_EQ(asked(), Asked{});
}

TEST_F(NodeConditionSyncTest, WhatChangedIsReportedAtOnceAndWhatDidNotNowAndThen) {
  NodeConditionSync node = teller(true, false);
  node.adopt(calm());
  run_once(node);
  EXPECT_EQ(asked(), Asked{"PATCH"});
  run_once(node);
  EXPECT_EQ(asked(), Asked{}) << "nothing changed";
  node.adopt(pressed());
  run_once(node);
  EXPECT_EQ(asked(), Asked{"PATCH"});
  now_ += kHeartbeat - 1ns;
  run_once(node);
  EXPECT_EQ(asked(), Asked{});
  now_ += 1ns;
  run_once(node);
  EXPECT_EQ(asked(), Asked{"PATCH"});
}

TEST_F(NodeConditionSyncTest, AnEventIsSentForEachConditionThatChanged) {
  NodeConditionSync node({.node_name = "n1", .conditions = true, .events = true}, {});
  NodeConditions conditions = calm();
  node.adopt(conditions);
  run_once(node);
  EXPECT_EQ(asked(), Asked{"PATCH"}) << "what was unknown has not changed";
  conditions[3].holds = true;
  node.adopt(conditions);
  run_once(node);
  EXPECT_EQ(asked(), (Asked{"PATCH", "POST"}));
  now_ += kHeartbeat;
  run_once(node);
  EXPECT_EQ(asked(), Asked{"PATCH"}) << "a heartbeat is no change";
  conditions[3].holds.reset();
  node.adopt(conditions);
  run_once(node);
  EXPECT_EQ(asked(), Asked{"PATCH"}) << "nor is it when headroomd stops";
}

TEST_F(NodeConditionSyncTest, AnEventWaitsForItsCondition) {
  NodeConditionSync node({.node_name = "n1", .conditions = true, .events = true}, {});
  node.adopt(calm());
  run_once(node);
  node.adopt(pressed());
  status_ = 500;
  run_once(node);
  status_ = 200;
  now_ += 2min;
  run_once(node);
  EXPECT_EQ(asked(), (Asked{"PATCH", "PATCH", "PATCH", "POST"}));
}

TEST_F(NodeConditionSyncTest, TaintsThatAreRightAreOnlyRead) {
  NodeConditionSync node = teller(false, true);
  node.adopt(calm());
  run_once(node);
  EXPECT_EQ(asked(), Asked{"GET"});
  node.adopt(pressed());
  run_once(node);
  EXPECT_EQ(asked(), (Asked{"GET", "PATCH"}));
  now_ += kTaintsRecheckPeriod;
  run_once(node);
  EXPECT_EQ(asked(), (Asked{"GET", "PATCH"})) << "another client took it off";
}

TEST_F(NodeConditionSyncTest, AFailureIsTriedAgainAfterAWhile) {
  NodeConditionSync node = teller(true, false);
  node.adopt(pressed());
  for (const long status : {409L, 500L, 403L, 503L}) {
    status_ = status;
    const auto published = run_once(node);
    EXPECT_NE(published.response_class, ResponseClass::kDone) << status;
    asked();
    run_once(node);
    EXPECT_EQ(asked(), Asked{}) << "not at once, " << status;
    now_ += 2min;
  }
  status_ = 200;
  run_once(node);
  EXPECT_EQ(asked(), Asked{"PATCH"});
  EXPECT_TRUE(node.published().conditions);
}

TEST_F(NodeConditionSyncTest, WhatAFormerLifeLeftIsTakenBackOnce) {
  NodeConditionSync node = teller(false, false, {.conditions = true, .taints = true});
  status_ = 500;
  node_ = node_with(Json::array({kOurs})).dump();
  run_once(node);
  EXPECT_EQ(node.published(), (PublishedOnNode{.conditions = true, .taints = true}));
  now_ += 1min;
  status_ = 200;
  asked();
  run_once(node);
  EXPECT_EQ(asked(), (Asked{"PATCH", "GET", "PATCH"}));
  EXPECT_EQ(node.published(), PublishedOnNode{});
  EXPECT_FALSE(node.due());
}

}  // namespace
}  // namespace headroom::kube
