// SPDX-License-Identifier: Apache-2.0
// Files as kubelets and we have them, and what --check-config says of one.
#include "config/files.h"
#include "config/kubelet_keys.h"
#include "config/load/load.h"
#include "config/thresholds_as_text.h"

#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::config {
namespace {

using test::kHead;
using test::load_file;
using test::load_text;
using test::said;
using test::TempDir;
using test::thresholds_as_text;
using namespace std::chrono_literals;

TEST(Fixtures, AKubeletsOwnFileWorksUnchanged) {
  const auto config = load_file("tests/fixtures/config/kubeadm.yaml");
  ASSERT_TRUE(config) << said(config)[0];
  EXPECT_EQ(
      thresholds_as_text(config->policy.thresholds),
      (std::vector<std::string>{
          "allocatableMemory.available < 500Mi, reclaim 0", "imagefs.available < 10%, reclaim 2Gi",
          "imagefs.inodesFree < 5%", "kernel.memAvailable < 50Mi",
          "memory.available < 1536Mi for 90s, reclaim 0", "memory.available < 500Mi, reclaim 0",
          "nodefs.available < 10% for 120s, reclaim 500Mi", "nodefs.available < 5%, reclaim 500Mi",
          "nodefs.inodesFree < 5%", "pid.available < 10%"}));
  EXPECT_EQ(config->policy.max_pod_grace, 60s);
  EXPECT_EQ(config->policy.pressure_transition, 5min);  // 0s is unset
}

TEST(Fixtures, AJsonFileWithTabsWorksToo) {
  const auto config = load_file("tests/fixtures/config/managed-node.json");
  ASSERT_TRUE(config) << said(config)[0];
  EXPECT_EQ(config->pods_cgroup, "kubepods");
  EXPECT_EQ(config->policy.thresholds.size(), 5u);
}

// Key lines are commented "#key" or, inside a commented map, "#  key"; prose is "# Word".
std::string uncommented(const std::string& line) {
  const std::size_t sign = line.find_first_not_of(' ');
  if (sign == std::string::npos || line[sign] != '#') return line;
  const std::string rest = line.substr(sign + 1);
  const std::size_t first = rest.find_first_not_of(' ');
  const bool key = (first == 0 || first == 2) && rest[first] >= 'a' && rest[first] <= 'z';
  return key ? line.substr(0, sign) + rest : line;
}

// systemd/headroom.yaml as it is, or with every commented key brought in.
std::string shipped_file(bool with_keys) {
  std::ifstream in("systemd/headroom.yaml");
  std::string text;
  for (std::string line; std::getline(in, line);)
    text += (with_keys ? uncommented(line) : line) + "\n";
  return text;
}

TEST(Fixtures, TheShippedFileHasTheDefaults) {
  TempDir dir;
  const auto none = load_text("");
  ASSERT_TRUE(none);
  for (const bool with_keys : {false, true}) {
    const auto config = load_file(dir.write("f", shipped_file(with_keys)));
    ASSERT_TRUE(config) << said(config)[0];
    EXPECT_EQ(thresholds_as_text(config->policy.thresholds),
              thresholds_as_text(none->policy.thresholds));
    EXPECT_EQ(config->policy.mode, none->policy.mode);
    EXPECT_EQ(config->policy.pressure_transition, none->policy.pressure_transition);
    EXPECT_EQ(config->policy.max_pod_grace, none->policy.max_pod_grace);
    EXPECT_EQ(config->policy.hard_grace, none->policy.hard_grace);
    EXPECT_EQ(config->policy.fastest_fill, none->policy.fastest_fill);
    EXPECT_EQ(config->policy.check_floor, none->policy.check_floor);
    EXPECT_EQ(config->policy.check_ceiling, none->policy.check_ceiling);
    EXPECT_EQ(config->policy.sweep_period, none->policy.sweep_period);
    EXPECT_EQ(config->cpu_budget, none->cpu_budget);
    EXPECT_EQ(config->listen, none->listen);
    EXPECT_EQ(config->pod_manifests, none->pod_manifests);
    EXPECT_EQ(config->audit_log, none->audit_log);
    EXPECT_EQ(config->state_dir, none->state_dir);
    EXPECT_EQ(config->pods_cgroup, none->pods_cgroup);
    EXPECT_EQ(config->compatibility_metrics, none->compatibility_metrics);
    EXPECT_EQ(config->metrics.old_names, none->metrics.old_names);
    EXPECT_EQ(config->log_level, none->log_level);
    EXPECT_EQ(config->taints, none->taints);
    EXPECT_EQ(config->reserved.kube.amounts, none->reserved.kube.amounts);
    EXPECT_EQ(config->max_pods, none->max_pods);
    EXPECT_EQ(config->node_name, none->node_name);
    EXPECT_EQ(config->node_labels, none->node_labels);
    EXPECT_EQ(config->node_status, none->node_status);
  }
}

TEST(Fixtures, TheShippedFileHasEveryHeadroomKey) {
  const std::string text = shipped_file(true);
  for (const std::string_view key :
       {"mode", "listen", "podManifests", "auditLog", "stateDirectory", "podsCgroup",
        "compatibilityMetrics", "logLevel", "hardGrace", "fastestFill", "checkFloor",
        "checkCeiling", "sweepPeriod", "selfCheckPeriod", "nodeName", "nodeLabels", "nodeStatus"})
    EXPECT_NE(text.find("\n  " + std::string(key) + ": "), std::string::npos) << key;
}

TEST(CheckConfig, PrintsOneDiagnosticPerLineAndStartsNothing) {
  TempDir dir;
  CommandLine line;
  line.config = {dir.write("f.yaml", std::string(kHead) + "maxpods: 1\nprot: 2\n")};
  line.mode = {"kill"};
  std::ostringstream out, err;
  EXPECT_EQ(check_config(line, out, err), 2);
  const std::string file = line.config[0];
  EXPECT_EQ(err.str(), file + ":4: unknown key prot, did you mean port?\n" + file +
                           ":3: unknown key maxpods, did you mean maxPods?\n"
                           "--mode: expected observe or enforce, found \"kill\"\n");
  EXPECT_EQ(out.str(), "");
}

// A kubelet of another version has other keys: its file works here, with warnings.
TEST(CheckConfig, KeysOfAnotherKubeletAreWarnings) {
  TempDir dir;
  CommandLine line;
  line.config = {
      dir.write("f.yaml", std::string(kHead) +
                              "defaultPodSysctls: {net.ipv4.tcp_syncookies: \"1\"}\n"
                              "draManagerReconcilePeriod: 10s\n"
                              "evictionSofterGracePeriods: {}\n"
                              "memorySwap: {swapBehavior: NoSwap, zswap: true}\n"
                              "imageGCHighThresholdPercents: 80\n"
                              "registerWithTaints: [{key: a, effect: NoExecute, owner: b}]\n")};
  std::ostringstream out, err;
  EXPECT_EQ(check_config(line, out, err), 0) << err.str();
  const std::string file = line.config[0];
  EXPECT_EQ(err.str(), file +
                           ":4: unknown key draManagerReconcilePeriod, did you mean "
                           "cpuManagerReconcilePeriod?\n" +
                           file +
                           ":5: unknown key evictionSofterGracePeriods, did you mean "
                           "evictionSoftGracePeriod?\n" +
                           file +
                           ":7: unknown key imageGCHighThresholdPercents, did you mean "
                           "imageGCHighThresholdPercent?\n" +
                           file + ":6: unknown key memorySwap.zswap\n" + file +
                           ":8: unknown key registerWithTaints[0].owner\n");
  const LoadResult loaded = read(line);
  EXPECT_EQ(loaded.warnings.size(), 5u);
  ASSERT_EQ(loaded.config.taints.size(), 1u);
}

TEST(CheckConfig, AGateNeedsTheGatesThatItDependsOn) {
  TempDir dir;
  CommandLine line;
  line.config = {dir.write("on.yaml", std::string(kHead) +
                                          "featureGates:\n PodLevelResourceManagers: true\n"
                                          " PodLevelResources: true\n")};
  const LoadResult on = read(line);
  EXPECT_TRUE(on.diagnostics.empty() && on.warnings.empty());
  EXPECT_TRUE(on.config.cpus.pod_level_managers);
  line.config = {dir.write(
      "alone.yaml", std::string(kHead) + "featureGates: {PodLevelResourceManagers: true}\n")};
  EXPECT_TRUE(read(line).config.cpus.pod_level_managers);
  line.config = {dir.write("off.yaml", std::string(kHead) +
                                           "featureGates:\n PodLevelResourceManagers: true\n"
                                           " PodLevelResources: false\n")};
  const LoadResult off = read(line);
  ASSERT_EQ(off.diagnostics.size(), 1u);
  EXPECT_EQ(to_string(off.diagnostics[0]),
            line.config[0] +
                ":4: featureGates.PodLevelResourceManagers: requires the gate PodLevelResources, "
                "which is set to false");
}

TEST(CheckConfig, KeysThatHeadroomDoesNotImplementAreListed) {
  TempDir dir;
  CommandLine line;
  line.config = {dir.write("f.yaml", std::string(kHead) +
                                         "failSwapOn: false\nshutdownGracePeriod: 30s\n"
                                         "oomScoreAdj: -999\nport: 10250\n")};
  const LoadResult loaded = read(line);
  EXPECT_TRUE(loaded.diagnostics.empty() && loaded.warnings.empty());
  EXPECT_EQ(loaded.ignored_keys,
            (std::vector<std::string>{"failSwapOn", "oomScoreAdj", "shutdownGracePeriod"}));
  for (const IgnoredKubeletKey& ignored : ignored_kubelet_keys())
    EXPECT_TRUE(is_kubelet_key(ignored.key)) << ignored.key;
}

TEST(CheckConfig, AValidConfigurationReturnsZero) {
  CommandLine line;
  line.config = {"tests/fixtures/config/kubeadm.yaml"};
  std::ostringstream out, err;
  EXPECT_EQ(check_config(line, out, err), 0);
  EXPECT_EQ(err.str(), "");
}

}  // namespace
}  // namespace headroom::config
