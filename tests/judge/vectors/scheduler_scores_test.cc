// SPDX-License-Identifier: Apache-2.0
// Scores of nodes by the scheduler of Kubernetes 1.36.
#include "judge/admission/scheduler.h"
#include "judge/vectors/lines.h"
#include "judge/vectors/pod_json.h"

#include <string>
#include <vector>

namespace headroom::vectors {
namespace {

using Json = nlohmann::json;

NodeState node_of(const Json& json, bool pod_level) {
  NodeState node;
  node.name = json.at("name").get<std::string>();
  ResourceList allocatable;
  for (const auto& [resource, text] : json.at("allocatable").items())
    allocatable[resource] = Quantity::parse(text.get<std::string>()).value();
  node.allocatable = counts_of(allocatable);
  for (const Json& pod : json.at("pods"))
    node.pods.push_back(on_node(pod_of(pod, pod_level)));
  return node;
}

std::vector<ScoredResource> resources_of(const Json& list) {
  std::vector<ScoredResource> resources;
  for (const Json& each : list)
    resources.push_back({each.at("name").get_ref<const std::string&>(), each.at("weight")});
  return resources;
}

class SchedulerScoreVectors : public VectorTest {};

TEST_P(SchedulerScoreVectors, Agree) {
  const bool pod_level = line().at("gates").at("PodLevelResources").get<bool>();
  const Pod pod = pod_of(line().at("pod"), pod_level);
  const auto fit = resources_of(line().at("fit_resources"));
  const auto balanced = resources_of(line().at("balanced_resources"));
  for (const Json& each : line().at("nodes")) {
    const NodeState node = node_of(each, pod_level);
    EXPECT_EQ(least_allocated(pod, node, fit), each.at("least_allocated")) << node.name;
    const auto score = balanced_allocation(pod, node, balanced);
    EXPECT_EQ(score ? Json(*score) : Json(), each.at("balanced_allocation")) << node.name;
    EXPECT_EQ(!score, line().at("balanced_skipped").get<bool>());
  }
}

INSTANTIATE_TEST_SUITE_P(Lines, SchedulerScoreVectors,
                         testing::ValuesIn(lines_of("scheduler_scores_136.jsonl")), case_name);

}  // namespace
}  // namespace headroom::vectors
