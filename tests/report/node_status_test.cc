// SPDX-License-Identifier: Apache-2.0
// The node's status as metrics and in the status document.
#include "report/view/node_status.h"

#include "judge/admission/admission_node.h"
#include "report/metrics/exposition/exposition_text.h"
#include "report/metrics/metrics.h"
#include "report/sample.h"
#include "report/status/status_json.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

using namespace headroom::test;
using Json = nlohmann::ordered_json;

NodeStatusRef tainted_status() {
  auto status = std::make_shared<NodeStatus>();
  status->state = node_named("n1");
  status->state.taints = {{"dedicated", "gpu", TaintEffect::kNoExecute}};
  status->state.conditions = {true, false, false};
  status->conditions[0].holds = true;
  status->capacity.emplace("cpu", quantity("4"));
  status->allocatable.emplace("cpu", quantity("3500m"));
  status->allocatable.emplace("memory", quantity("1Gi"));
  status->requested.emplace("pods", quantity("2"));
  return status;
}

TEST(NodeStatusMetrics, ReadLikeKubeStateMetrics) {
  Families families;
  add_status_families(*tainted_status(), families);
  std::string text;
  for (const auto& family : families)
    append_family(text, Format::kText, family);
  for (
      const char* sample :
      {R"(headroom_node_condition{condition="MemoryPressure",status="true"} 1)",
       R"(headroom_node_condition{condition="MemoryPressure",status="false"} 0)",
       R"(headroom_node_condition{condition="DiskPressure",status="true"} 0)",
       R"(headroom_node_taint{effect="NoExecute",key="dedicated",value="gpu"} 1)",
       R"(headroom_node_taint{effect="NoSchedule",key="node.kubernetes.io/memory-pressure",value=""} 1)",
       R"(headroom_node_capacity{resource="cpu",unit="core"} 4)",
       R"(headroom_node_allocatable{resource="cpu",unit="core"} 3.5)",
       R"(headroom_node_allocatable{resource="memory",unit="byte"} 1073741824)",
       R"(headroom_node_requested{resource="pods",unit="integer"} 2)"})
    EXPECT_NE(text.find(std::string(sample) + "\n"), std::string::npos) << sample << "\n" << text;
}

TEST(NodeStatusJson, HasTaintsAndThePodsThatLeave) {
  NodeView node = sample_node();
  EXPECT_EQ(status_json(node, sample_cgroups(), nullptr)["taints"], nullptr) << "not known yet";
  node.status = tainted_status();
  const CgroupTable cgroups = sample_cgroups();
  node.taint_timers = {{cgroups.pods[0].cgroup, node.at, std::chrono::seconds(30)},
                       {CgroupId{987654}, node.at, std::chrono::seconds(30)}};
  const Json status = status_json(node, cgroups, nullptr);
  ASSERT_EQ(status["taints"].size(), 2u);
  EXPECT_EQ(status["taints"][0]["taint"], "dedicated=gpu:NoExecute");
  EXPECT_EQ(status["taints"][0]["from"], "operator");
  EXPECT_EQ(status["taints"][1]["from"], "condition");
  ASSERT_EQ(status["taint_evictions"].size(), 1u) << "a pod that is no more leaves no more";
  EXPECT_EQ(status["taint_evictions"][0]["name"], cgroups.pods[0].pod->name);
  EXPECT_EQ(status["taint_evictions"][0]["seconds"], 30.0);
  EXPECT_EQ(status["node"]["allocatable"]["cpu"], "3500m");
}

}  // namespace
}  // namespace headroom::report
