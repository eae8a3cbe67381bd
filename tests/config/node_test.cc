// SPDX-License-Identifier: Apache-2.0
// The node as configured: taints, reserves, pods, name and labels.
#include "config/files.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::config {
namespace {

using test::load_text;
using test::said;
using Lines = std::vector<std::string>;

TEST(NodeConfig, IsReadFromKubeletAndHeadroomKeys) {
  const auto config = load_text(R"(registerWithTaints:
- {key: dedicated, value: gpu, effect: NoExecute}
- {key: dedicated, effect: NoSchedule}
kubeReserved: {cpu: 500m, memory: 1Gi}
systemReserved: {memory: 512Mi, pid: "1000"}
maxPods: 50
podsPerCore: 10
headroom:
  nodeName: n1
  nodeLabels: {zone: a, example.com/disk: ssd}
  nodeStatus: /srv/node.json
)");
  ASSERT_TRUE(config) << said(config)[0];
  const std::vector<Taint> taints{{"dedicated", "gpu", TaintEffect::kNoExecute},
                                  {"dedicated", "", TaintEffect::kNoSchedule}};
  EXPECT_EQ(config->taints, taints);
  EXPECT_EQ(config->reserved.kube.amounts.cpu, MilliCpu{500});
  EXPECT_EQ(config->reserved.system.amounts.memory, 512_MiB);
  EXPECT_EQ(config->reserved.system.amounts.pids, Tasks{1000});
  EXPECT_EQ(config->max_pods, 50);
  EXPECT_EQ(config->pods_per_core, 10);
  EXPECT_EQ(config->node_name, "n1");
  EXPECT_EQ(config->node_labels, (Labels{{"zone", "a"}, {"example.com/disk", "ssd"}}));
  EXPECT_EQ(config->node_status, "/srv/node.json");
}

TEST(NodeConfig, ReservedCpusReplaceBothAmounts) {
  const auto config = load_text(
      "kubeReserved: {cpu: 500m}\nsystemReserved: {cpu: 500m}\nreservedSystemCPUs: 0-2,5\n");
  ASSERT_TRUE(config) << said(config)[0];
  EXPECT_EQ(config->reserved.kube.amounts.cpu, std::nullopt);
  EXPECT_EQ(config->reserved.system.amounts.cpu, MilliCpu{4000});
}

TEST(NodeConfig, ReportsAllErrorsAtOnce) {
  EXPECT_EQ(said(load_text(R"(registerWithTaints:
- {key: a, effect: Never}
- {effect: NoSchedule}
- {key: "a b", effect: NoSchedule}
- {key: a, effect: NoSchedule}
- {key: a, value: other, effect: NoSchedule}
kubeReserved:
  memory: -1Gi
  gpu: "1"
maxPods: -1
headroom:
  nodeStatus: node.json
  nodeLabels: {zone: "a b"}
)")),
            (Lines{"4: registerWithTaints[0].effect: expected NoSchedule, PreferNoSchedule or "
                   "NoExecute, found \"Never\"",
                   "5: missing registerWithTaints[1].key",
                   "6: registerWithTaints[2].key: the key \"a b\" must be a name such as dedicated "
                   "or example.com/dedicated: up to 63 letters, digits, '-', '_' and '.', which "
                   "begin and end with a letter or digit",
                   "8: registerWithTaints[4].key: there is a:NoSchedule already",
                   "10: kubeReserved.memory: --kube-reserved value failed to parse: resource "
                   "quantity for \"memory\" cannot be negative: -1Gi",
                   "11: kubeReserved.gpu: --kube-reserved value failed to parse: cannot reserve "
                   "\"gpu\" resource; what can be is cpu, memory, ephemeral-storage and pid",
                   "12: maxPods: expected a whole number from 0 to 2147483647, found the number -1",
                   "14: headroom.nodeStatus: expected an absolute path, or nothing for no file, "
                   "found \"node.json\"",
                   "15: headroom.nodeLabels: the value \"a b\" must be up to 63 letters, digits, "
                   "'-', '_' and '.', which begin and end with a letter or digit"}));
}

}  // namespace
}  // namespace headroom::config
