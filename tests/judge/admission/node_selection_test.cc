// SPDX-License-Identifier: Apache-2.0
// Placing: which nodes are out of the question and why, how the others score, who is chosen.
#include "judge/admission/admission_node.h"
#include "judge/admission/scheduler.h"

#include <functional>
#include <vector>

#include <gtest/gtest.h>

namespace headroom {
namespace {

using namespace test;
using Lines = std::vector<std::string>;

NodeState node_with(const std::string& name, std::vector<Pod> pods) {
  NodeState node = node_named(name);
  for (const Pod& pod : pods)
    node.pods.push_back(on_node(pod));
  return node;
}

TEST(PlaceFilter, HasTheSchedulersMessages) {
  struct Case {
    const char* says;
    std::function<void(NodeState&)> set;
    Lines reasons;
  };
  for (const Case& c : {
           Case{"nothing", [](NodeState&) {}, {}},
           Case{"cordoned",
                [](NodeState& n) { n.unschedulable = true; },
                {"node(s) were unschedulable"}},
           Case{"a_taint",
                [](NodeState& n) {
                  n.taints = {{"dedicated", "gpu"}};
                },
                {"node(s) had untolerated taint {dedicated: gpu}"}},
           Case{"a_preference_is_none",
                [](NodeState& n) {
                  n.taints = {{"a", "", TaintEffect::kPreferNoSchedule}};
                },
                {}},
           Case{"a_condition_is_a_taint",
                [](NodeState& n) {
                  n.conditions = {true, true, false};
                },
                {"node(s) had untolerated taint {node.kubernetes.io/disk-pressure: }"}},
           Case{"cpu_and_memory",
                [](NodeState& n) {
                  n.allocatable["cpu"] = 100;
                  n.allocatable["memory"] = 100;
                },
                {"Insufficient cpu", "Insufficient memory"}},
           Case{"pods", [](NodeState& n) { n.allocatable["pods"] = 0; }, {"Too many pods"}},
           Case{"unknown",
                [](NodeState& n) { n.allocatable.erase("cpu"); },
                {"Unknown allocatable cpu"}},
       }) {
    NodeState node = node_named("n");
    c.set(node);
    const Pod pod = pod_asking("new", {.cpu = "1", .memory = "1Gi"});
    EXPECT_EQ(filter(pod, on_node(pod), node), c.reasons) << c.says;
  }
}

TEST(PlaceFilter, AnExtendedResourceMustBeKnown) {
  Pod pod = pod_asking("new");
  pod.containers[0].requests.emplace("nvidia.com/gpu", quantity("1"));
  EXPECT_EQ(filter(pod, on_node(pod), node_named("n")), Lines{"Insufficient nvidia.com/gpu"});
}

// Worked by hand: 4000m and 8 GiB.
TEST(PlaceScores, InIntegersAsTheSchedulerHasThem) {
  struct Case {
    const char* says;
    std::vector<Pod> running;
    Pod pod;
    std::int64_t least, balanced;
  };
  for (const Case& c : {
           // cpu (4000-1000)*100/4000 = 75, memory (8-2)*100/8 = 75; both a quarter full. In
           // balance before and after: 50 + 50/2.
           Case{"an_empty_node", {}, pod_asking("new", {.cpu = "1", .memory = "2Gi"}), 75, 75},
           // cpu 75, memory 8192-200 MiB: 97.56 → 97; (75+97)/2 = 86. Shares .25 and 0: 1-.125 →
           // 87, before 100: 50 + (50-13)/2.
           Case{"memory_not_asked_for_counts_200Mi", {}, pod_asking("new", {.cpu = "1"}), 86, 68},
           // cpu 100m: 97.5 → 97; memory 97; the balance is skipped.
           Case{"nothing_asked_for", {}, pod_asking("new"), 97, 0},
           // cpu 3000+1000 of 4000: 0; memory 1+1 of 8: 75; 37. |1-.25|/2 = .375 → 62, before
           // |.75-.125|/2 = .3125 → 68: 50 + (50-6)/2.
           Case{"with_others",
                {pod_asking("old", {.cpu = "3", .memory = "1Gi"})},
                pod_asking("new", {.cpu = "1", .memory = "1Gi"}),
                37,
                72},
       }) {
    const NodeState node = node_with("n", c.running);
    const PlacementResult places = select_node(c.pod, std::vector{node});
    ASSERT_TRUE(places.nodes[0].scores) << c.says;
    EXPECT_EQ(places.nodes[0].scores->least_allocated, c.least) << c.says;
    EXPECT_EQ(places.nodes[0].scores->balanced_allocation, c.balanced) << c.says;
  }
}

TEST(PlaceScores, TaintsAreCountedAndReversed) {
  std::vector<NodeState> nodes{node_named("a"), node_named("b"), node_named("c")};
  const auto prefer = [](const char* key) {
    return Taint{key, "", TaintEffect::kPreferNoSchedule};
  };
  nodes[1].taints = {prefer("x")};
  nodes[2].taints = {prefer("x"), prefer("y"), prefer("z")};
  Pod pod = pod_asking("new");
  const auto scores = [&] {
    std::vector<std::int64_t> all;
    for (const NodeCandidate& node : select_node(pod, nodes).nodes)
      all.push_back(node.scores->taint_toleration);
    return all;
  };
  EXPECT_EQ(scores(), (std::vector<std::int64_t>{100, 67, 0})) << "100 - 100*1/3";
  pod.placement.tolerations = {{.op = Toleration::Operator::kExists}};
  EXPECT_EQ(scores(), (std::vector<std::int64_t>{100, 100, 100}));
}

TEST(PlaceScores, PreferredTermsAddTheirWeightsAndTheMostIs100) {
  std::vector<NodeState> nodes{node_named("a"), node_named("b"), node_named("c")};
  nodes[0].labels = {{"disk", "ssd"}};
  nodes[1].labels = {{"disk", "ssd"}, {"zone", "1"}};
  Pod pod = pod_asking("new");
  using Operator = LabelRequirement::Operator;
  pod.placement.preferred = {{20, {{{"disk", Operator::kIn, {"ssd"}}}, {}}},
                             {40, {{{"zone", Operator::kExists}}, {}}}};
  const PlacementResult places = select_node(pod, nodes);
  EXPECT_EQ(places.nodes[0].scores->node_affinity, 33);
  EXPECT_EQ(places.nodes[1].scores->node_affinity, 100);
  EXPECT_EQ(places.nodes[2].scores->node_affinity, 0);
  EXPECT_EQ(places.chosen, 1u);
}

TEST(Place, ChoosesTheHighestTotalAndTheFirstNameOfEquals) {
  const Pod pod = pod_asking("new", {.cpu = "1", .memory = "1Gi"});
  const NodeState busy = node_with("a", {pod_asking("old", {.cpu = "2", .memory = "4Gi"})});
  const std::vector<NodeState> nodes{busy, node_named("z"), node_named("m")};
  EXPECT_EQ(select_node(pod, nodes).chosen, 2u);
  const Scores scores{.least_allocated = 1,
                      .balanced_allocation = 10,
                      .taint_toleration = 100,
                      .node_affinity = 1000};
  EXPECT_EQ(scores.total(), 1 + 10 + 300 + 2000) << "the default profile's weights";
}

TEST(Place, AFilteredNodeDoesNotAffectOtherScores) {
  std::vector<NodeState> nodes{node_named("a"), node_named("b")};
  nodes[0].taints = {{"x", "", TaintEffect::kPreferNoSchedule},
                     {"y", "", TaintEffect::kNoSchedule}};
  nodes[1].taints = {{"x", "", TaintEffect::kPreferNoSchedule}};
  const PlacementResult places = select_node(pod_asking("new"), nodes);
  EXPECT_FALSE(places.nodes[0].scores);
  EXPECT_EQ(places.nodes[1].scores->taint_toleration, 0);
  EXPECT_EQ(places.chosen, 1u);
}

TEST(Place, ChoosesNoneIfAllAreFiltered) {
  std::vector<NodeState> nodes{node_named("a")};
  nodes[0].unschedulable = true;
  EXPECT_EQ(select_node(pod_asking("new"), nodes).chosen, std::nullopt);
  EXPECT_EQ(select_node(pod_asking("new"), {}).chosen, std::nullopt);
}

}  // namespace
}  // namespace headroom
