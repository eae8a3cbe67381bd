// SPDX-License-Identifier: Apache-2.0
// admit, place and taint: what people are shown.
#include "ctl/common/commands.h"
#include "judge/admission/admission_node.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::ctl {
namespace {

using namespace test;
using nlohmann::json;

json pod(const char* name, bool admitted) {
  return {{"namespace", "default"},
          {"name", name},
          {"admitted", admitted},
          {"refusals", json::array()},
          {"resolved_by_preemption", json::array()},
          {"preemption_victims", json::array()},
          {"untolerated_preferred_taints", json::array()}};
}

std::string answer(const json& pods) {
  return json{{"node", "n"}, {"pods", pods}}.dump();
}

TEST(AdmitOutput, EveryReasonAndPreemptedPods) {
  json refused = pod("hog", false);
  refused["refusals"] = {
      {{"reason", "Evicted"}, {"by", "kubelet"}, {"message", "The node had condition: [A]. "}},
      {{"reason", "TaintToleration"}, {"by", "scheduler"}, {"message", "node(s) had taints"}}};
  json critical = pod("dns", true);
  critical["resolved_by_preemption"] = {
      {{"reason", "OutOfpods"}, {"by", "kubelet"}, {"message", "too many"}}};
  critical["preemption_victims"] = {
      {{"namespace", "default"}, {"name", "web"}, {"qos", "BestEffort"}, {"priority", 7}}};
  critical["untolerated_preferred_taints"] = {"a:PreferNoSchedule"};
  const auto rendered = render_admission(answer({pod("ok", true), refused, critical}), {});
  ASSERT_TRUE(rendered);
  EXPECT_FALSE(rendered->all_admitted);
  EXPECT_EQ(rendered->text,
            "default/ok: admitted\n"
            "default/hog: refused\n"
            "  Evicted          kubelet    The node had condition: [A].\n"
            "  TaintToleration  scheduler  node(s) had taints\n"
            "default/dns: admitted, preempting 1 pod\n"
            "  OutOfpods  kubelet  too many\n"
            "  preempts default/web (BestEffort, priority 7)\n"
            "  another node is preferred: it does not tolerate a:PreferNoSchedule\n");
}

TEST(AdmitOutput, TrueOnlyIfAllAreAdmitted) {
  EXPECT_TRUE(render_admission(answer(json::array({pod("a", true)})), {})->all_admitted);
  EXPECT_FALSE(render_admission(answer({pod("a", true), pod("b", false)}), {})->all_admitted);
  EXPECT_FALSE(render_admission("{}", {}));
  EXPECT_FALSE(render_admission("nonsense", {}));
}

TEST(PlaceOutput, ScoresBestFirstAndReasonsOfTheOthers) {
  std::vector<NodeState> nodes{node_named("busy"), node_named("idle"), node_named("tainted")};
  nodes[0].pods = {on_node(pod_asking("old", {.cpu = "2", .memory = "4Gi"}))};
  nodes[2].taints = {{"dedicated", "gpu", TaintEffect::kNoSchedule}};
  const Pod pod = pod_asking("web", {.cpu = "1", .memory = "2Gi"});
  const PlacementResult places = select_node(pod, nodes);
  EXPECT_EQ(render_places(pod, nodes, places, {}),
            "NODE  TOTAL  LEAST ALLOCATED  BALANCED  TAINTS  AFFINITY\n"
            "idle    450               75        75     100         0\n"
            "busy    400               25        75     100         0\n"
            "tainted: node(s) had untolerated taint {dedicated: gpu}\n"
            "default/web: the best node is idle\n");
  const json document = json::parse(places_json(pod, nodes, places));
  EXPECT_EQ(document["node"], "idle");
  EXPECT_EQ(document["nodes"][1]["scores"]["total"], 450);
  EXPECT_FALSE(document["nodes"][2]["feasible"]);
  EXPECT_TRUE(document["nodes"][2]["scores"].is_null());
}

TEST(PlaceOutput, NoFeasibleNode) {
  std::vector<NodeState> nodes{node_named("n")};
  nodes[0].unschedulable = true;
  const Pod pod = pod_asking("web");
  EXPECT_EQ(render_places(pod, nodes, select_node(pod, nodes), {}),
            "n: node(s) were unschedulable\n"
            "default/web: 0/1 nodes are available\n");
}

TEST(TaintOutput, TheOriginOfEachAndTheLeavingPods) {
  const json status{{"taints",
                     {{{"taint", "dedicated=gpu:NoExecute"}, {"from", "operator"}},
                      {{"taint", "memory:NoSchedule"}, {"from", "condition"}}}},
                    {"taint_evictions",
                     {{{"namespace", "default"}, {"name", "web"}, {"seconds", 12.0}},
                      {{"namespace", "default"}, {"name", "late"}, {"seconds", -1.0}}}}};
  EXPECT_EQ(render_taints(status.dump(), {}).value(),
            "TAINT                    FROM\n"
            "dedicated=gpu:NoExecute  operator\n"
            "memory:NoSchedule        condition\n"
            "default/web is evicted in 12s\n"
            "default/late is evicted now\n");
  EXPECT_EQ(json::parse(taints_json(status.dump()).value())["taints"].size(), 2u);
  EXPECT_EQ(render_taints(R"({"taints": []})", {}).value(), "no taints\n");
  EXPECT_FALSE(render_taints("{}", {})) << "not looked yet";
  EXPECT_FALSE(render_taints(R"({"taints": [7]})", {}));
}

TEST(TaintOutput, InStatusWhereThereAreAny) {
  Status status;
  EXPECT_EQ(render_status(status, {}).find("taints:"), std::string::npos);
  status.taints = {"a:NoExecute", "b=1:NoSchedule"};
  EXPECT_NE(render_status(status, {}).find("\ntaints:  a:NoExecute, b=1:NoSchedule\n"),
            std::string::npos);
}

}  // namespace
}  // namespace headroom::ctl
