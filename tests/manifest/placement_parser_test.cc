// SPDX-License-Identifier: Apache-2.0
// Where a manifest lets its pod be: what is read, and what is said of what means nothing.
#include "config/rows.h"
#include "manifest/manifest_reader.h"

#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

using std::chrono::seconds;
using test::RowName;
using Operator = LabelRequirement::Operator;

std::vector<std::string> said(const config::Diagnostics& diagnostics) {
  std::vector<std::string> lines;
  for (const config::Diagnostic& diagnostic : diagnostics)
    lines.push_back(to_string(diagnostic));
  return lines;
}

// The lines of the spec start at 6.
std::string pod_of(const std::string& spec) {
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers: [{name: c}]\n" +
         spec;
}

Pod only(const std::string& text) {
  const Manifests manifests = parse_manifests(text, "f");
  EXPECT_EQ(said(manifests.diagnostics), std::vector<std::string>{});
  return manifests.pods.empty() ? Pod{} : manifests.pods[0];
}

TEST(PlacementOf, APodThatSaysNothing) {
  EXPECT_EQ(only(pod_of("")).placement, Placement{});
}

TEST(PlacementOf, ReadsAllOfIt) {
  const Placement placement = only(pod_of(R"(  nodeName: n1
  nodeSelector: {disk: ssd}
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions:
          - {key: zone, operator: In, values: [a, b]}
          - {key: cores, operator: Gt, values: ["4"]}
          matchFields:
          - {key: metadata.name, operator: In, values: [n1]}
      preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 7
        preference: {matchExpressions: [{key: gpu, operator: Exists}]}
  tolerations:
  - {key: dedicated, value: gpu, effect: NoExecute, tolerationSeconds: 30}
  - {operator: Exists}
)"))
                                  .placement;
  EXPECT_EQ(placement.node_name, "n1");
  EXPECT_EQ(placement.node_selector, (Labels{{"disk", "ssd"}}));
  ASSERT_TRUE(placement.required);
  const NodeTerm term{{{"zone", Operator::kIn, {"a", "b"}}, {"cores", Operator::kGt, {"4"}}},
                      {{"metadata.name", Operator::kIn, {"n1"}}}};
  EXPECT_EQ(*placement.required, std::vector<NodeTerm>{term});
  const PreferredTerm preferred{7, {{{"gpu", Operator::kExists, {}}}, {}}};
  EXPECT_EQ(placement.preferred, std::vector<PreferredTerm>{preferred});
  const std::vector<Toleration> tolerations{{.key = "dedicated",
                                             .value = "gpu",
                                             .effect = TaintEffect::kNoExecute,
                                             .seconds = seconds(30)},
                                            {.op = Toleration::Operator::kExists}};
  EXPECT_EQ(placement.tolerations, tolerations);
}

TEST(PlacementOf, ReadsLabelsAnnotationsAndItsOwner) {
  const Pod pod = only(
      "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  labels: {app: web}\n"
      "  annotations: {note: 'yes'}\n  ownerReferences: [{kind: DaemonSet, name: d}]\n"
      "spec: {containers: [{name: c}]}\n");
  EXPECT_EQ(pod.labels, (Labels{{"app", "web"}}));
  EXPECT_EQ(pod.annotations, (Labels{{"note", "yes"}}));
  EXPECT_TRUE(pod.placement.daemon_set);
}

TEST(PlacementOf, TakesHostPortsOfWhatRunsThroughout) {
  const std::string text =
      "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n%s"
      "  initContainers:\n"
      "  - {name: i, ports: [{containerPort: 1, hostPort: 1}]}\n"
      "  - {name: s, restartPolicy: Always, ports: [{containerPort: 2, hostPort: 9002}]}\n"
      "  containers:\n"
      "  - name: c\n"
      "    ports:\n"
      "    - {containerPort: 53, hostPort: 53, protocol: UDP, hostIP: 10.0.0.1}\n"
      "    - {containerPort: 80}\n";
  const auto with = [&](const std::string& line) {
    std::string whole = text;
    return only(whole.replace(whole.find("%s"), 2, line)).placement.host_ports;
  };
  const HostPort sidecar{.port = 9002};
  const HostPort dns{.port = 53, .protocol = HostPort::Protocol::kUdp, .address = "10.0.0.1"};
  EXPECT_EQ(with(""), (std::vector<HostPort>{sidecar, dns}));
  EXPECT_EQ(with("  hostNetwork: true\n"), (std::vector<HostPort>{sidecar, dns, {.port = 80}}))
      << "on the host's network every port is the host's";
}

struct Bad {
  const char* name;
  std::string spec;
  std::vector<std::string> diagnostics;
};
void PrintTo(const Bad& row, std::ostream* out) {
  *out << row.name;
}

class BadPlacement : public testing::TestWithParam<Bad> {};

TEST_P(BadPlacement, IsReported) {
  const Manifests manifests = parse_manifests(pod_of(GetParam().spec), "f");
  EXPECT_EQ(said(manifests.diagnostics), GetParam().diagnostics);
  EXPECT_TRUE(manifests.pods.empty());
}

std::string requiring(const std::string& expression) {
  return "  affinity:\n    nodeAffinity:\n      requiredDuringSchedulingIgnoredDuringExecution:\n"
         "        nodeSelectorTerms:\n        - matchExpressions:\n          - " +
         expression + "\n";
}
const std::string kWhere =
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
    ".matchExpressions[0].";

const Bad kBad[] = {
    {"a_value_for_exists",
     "  tolerations:\n  - {key: a, operator: Exists, value: b}\n",
     {"f:7: spec.tolerations[0].value: expected none, as the operator is Exists"}},
    {"equal_without_a_key",
     "  tolerations:\n  - {value: b}\n",
     {"f:7: spec.tolerations[0].key: without a key the operator must be Exists, which tolerates "
      "every taint"}},
    {"seconds_of_no_schedule",
     "  tolerations:\n  - key: a\n    effect: NoSchedule\n    tolerationSeconds: 5\n",
     {"f:9: spec.tolerations[0].tolerationSeconds: only for the effect NoExecute"}},
    {"unknown_words_each_once",
     "  tolerations:\n  - {key: a, operator: Is}\n  - {key: a, effect: Never}\n",
     {"f:7: spec.tolerations[0].operator: expected Equal, Exists, Gt or Lt, found \"Is\"",
      "f:8: spec.tolerations[1].effect: expected NoSchedule, PreferNoSchedule or NoExecute, found "
      "\"Never\""}},
    {"in_nothing",
     requiring("{key: a, operator: In}"),
     {"f:11: " + kWhere + "values: expected at least one, as the operator is In or NotIn"}},
    {"exists_of_a_value",
     requiring("{key: a, operator: Exists, values: [b]}"),
     {"f:11: " + kWhere + "values: expected none, as the operator is Exists or DoesNotExist"}},
    {"more_than_two",
     requiring("{key: a, operator: Gt, values: ['1', '2']}"),
     {"f:11: " + kWhere + "values: expected exactly one, as the operator is Gt or Lt"}},
    {"no_operator", requiring("{key: a}"), {"f:11: missing " + kWhere + "operator"}},
    {"a_number_for_a_label",
     "  nodeSelector: {cores: 4}\n",
     {"f:6: spec.nodeSelector.cores: expected a string (put it in quotes), found the number 4"}},
    {"an_impossible_port",
     "  initContainers:\n  - name: s\n    restartPolicy: Always\n    ports: [{hostPort: 70000}]\n",
     {"f:9: spec.initContainers[0].ports[0].hostPort: expected a whole number from 0 to 65535, "
      "found the number 70000"}},
};
INSTANTIATE_TEST_SUITE_P(Bad, BadPlacement, testing::ValuesIn(kBad), RowName{});

}  // namespace
}  // namespace headroom::observe
