// SPDX-License-Identifier: Apache-2.0
// v1 Nodes read from files: others' as well as ours, and what is said of bad ones.
#include "manifest/node_manifest.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

std::vector<std::string> said(const NodeManifests& manifests) {
  std::vector<std::string> lines;
  for (const config::Diagnostic& diagnostic : manifests.diagnostics)
    lines.push_back(to_string(diagnostic));
  return lines;
}

TEST(NodeManifest, ReadsWhatKubectlGets) {
  const auto manifests = parse_nodes(R"(apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata: {name: a, labels: {zone: "1"}}
  spec:
    unschedulable: true
    taints: [{key: dedicated, value: gpu, effect: NoSchedule, timeAdded: "2026-01-01T00:00:00Z"}]
  status:
    allocatable: {cpu: 3500m, memory: 8Gi, pods: "110"}
    conditions: [{type: MemoryPressure, status: "True"}]
- {kind: Node, metadata: {name: b}}
)",
                                     "f");
  EXPECT_EQ(said(manifests), std::vector<std::string>{});
  ASSERT_EQ(manifests.nodes.size(), 2u);
  const NodeState& node = manifests.nodes[0];
  EXPECT_EQ(node.name, "a");
  EXPECT_EQ(node.labels, (Labels{{"zone", "1"}}));
  EXPECT_TRUE(node.unschedulable);
  EXPECT_EQ(node.taints, (std::vector<Taint>{{"dedicated", "gpu", TaintEffect::kNoSchedule}}));
  const ResourceCounts allocatable{{"cpu", 3500}, {"memory", std::int64_t{8} << 30}, {"pods", 110}};
  EXPECT_EQ(node.allocatable, allocatable);
  EXPECT_FALSE(node.conditions[0]) << "the taint that follows from it is what counts";
}

TEST(NodeManifest, ReportsAllErrorsAtOnce) {
  const auto manifests = parse_nodes(R"({
 "kind": "Node",
 "spec": {"taints": [{"key": "a", "effect": "Never"},
                     {"effect": "NoSchedule"}]},
 "status": {"allocatable": {"cpu": "much"}}
})",
                                     "f");
  EXPECT_TRUE(manifests.nodes.empty());
  const auto lines = said(manifests);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], "f:1: missing metadata.name");
  EXPECT_EQ(lines[1],
            "f:3: spec.taints[0].effect: expected NoSchedule, PreferNoSchedule or NoExecute, found "
            "\"Never\"");
  EXPECT_EQ(lines[2], "f:4: missing spec.taints[1].key");
  EXPECT_TRUE(lines[3].starts_with("f:5: status.allocatable.cpu: \"much\"")) << lines[3];
}

TEST(NodeManifest, AnythingElseIsNoNode) {
  EXPECT_EQ(said(parse_nodes("kind: Pod\n", "f")),
            std::vector<std::string>{"f:1: expected kind Node, found \"Pod\""});
  EXPECT_EQ(said(parse_nodes("a: 1\n", "f")),
            std::vector<std::string>{"f:1: expected kind Node, found none"});
  EXPECT_EQ(said(parse_nodes("", "f")), std::vector<std::string>{"f: there is no Node in it"});
  EXPECT_EQ(said(parse_nodes("[]", "f")),
            std::vector<std::string>{"f:1: expected a Node, found a list"});
  EXPECT_EQ(said(read_nodes("/nonexistent/node.json")).size(), 1u);
}

}  // namespace
}  // namespace headroom::observe
