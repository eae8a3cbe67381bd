// SPDX-License-Identifier: Apache-2.0
// Every key of the table is either in force after a reload or reported as needing a restart.
#include "config/reload.h"

#include "config/files.h"
#include "config/keys.h"
#include "config/load/load.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace headroom::config {
namespace {

using namespace test;

// What other keys need to be accepted.
constexpr const char* kBase = R"(
featureGates: {MemoryQoS: true, CustomCPUCFSQuotaPeriod: true, CPUManagerPolicyBetaOptions: true}
cpuManagerPolicy: static
reservedSystemCPUs: "0"
evictionHard: {memory.available: 150Mi}
evictionSoft: {nodefs.available: 20%}
evictionSoftGracePeriod: {nodefs.available: 30s}
enforceNodeAllocatable: [none]
headroom:
  pressure: {memory: {threshold: 20%}, cpu: {threshold: 50%}}
  ladder:
    reclaim: {margin: 10%}
    squeeze: {margin: 5%}
    stuck: {waitDuration: 30s}
  reclaim: {images: [/bin/true]}
  kubernetes:
    api: {url: "https://127.0.0.1:6443", afterEviction: status}
)";

// A valid value that differs from the base's; of a map, one entry.
const std::map<std::string_view, std::string_view> kOtherValues{
    {"evictionHard", "{memory.available: 222Mi}"},
    {"mergeDefaultEvictionSettings", "true"},
    {"evictionSoft", "{nodefs.available: 21%}"},
    {"evictionSoftGracePeriod", "{nodefs.available: 31s}"},
    {"evictionMaxPodGracePeriod", "7"},
    {"evictionMinimumReclaim", "{nodefs.available: 1Gi}"},
    {"evictionPressureTransitionPeriod", "7m"},
    {"enforceNodeAllocatable", "[pods]"},
    {"localStorageCapacityIsolation", "false"},
    {"cgroupDriver", "cgroupfs"},
    {"cgroupRoot", "/other.slice"},
    {"kubeletCgroups", "/a.slice"},
    {"systemCgroups", "/b.slice"},
    {"kubeReservedCgroup", "/c.slice"},
    {"systemReservedCgroup", "/d.slice"},
    {"registerWithTaints", "[{key: a, effect: NoSchedule}]"},
    {"cgroupsPerQOS", "false"},
    {"qosReserved", "{memory: 50%}"},
    {"kubeReserved", "{memory: 64Mi}"},
    {"systemReserved", "{memory: 64Mi}"},
    {"reservedSystemCPUs", "\"0-1\""},
    {"cpuCFSQuota", "false"},
    {"cpuCFSQuotaPeriod", "50ms"},
    {"podPidsLimit", "1000"},
    {"memoryReservationPolicy", "TieredReservation"},
    {"memoryThrottlingFactor", "0.5"},
    {"memorySwap.swapBehavior", "LimitedSwap"},
    {"singleProcessOOMKill", "true"},
    {"cpuManagerPolicy", "none"},
    {"cpuManagerPolicyOptions", "{full-pcpus-only: \"true\"}"},
    {"cpuManagerReconcilePeriod", "7s"},
    {"memoryManagerPolicy", "Static"},
    {"reservedMemory", "[{numaNode: 0, limits: {memory: 1Gi}}]"},
    {"topologyManagerPolicy", "best-effort"},
    {"topologyManagerScope", "pod"},
    {"topologyManagerPolicyOptions", "{prefer-closest-numa-nodes: \"true\"}"},
    {"featureGates", "{MemoryQoS: false}"},
    {"maxPods", "77"},
    {"podsPerCore", "7"},
    {"headroom.mode", "enforce"},
    {"headroom.listen", "\"127.0.0.1:9751\""},
    {"headroom.hostNames", "[node.example]"},
    {"headroom.compatibilityMetrics", "true"},
    {"headroom.metrics.oldNames", "false"},
    {"headroom.metrics.cgroups", "all"},
    {"headroom.metrics.exclude", "[container_*]"},
    {"headroom.podManifests", "/etc/other"},
    {"headroom.podsCgroup", "other.slice"},
    {"headroom.auditLog", "/var/log/other.jsonl"},
    {"headroom.stateDirectory", "/run/other"},
    {"headroom.nodeStatus", "/run/other.json"},
    {"headroom.nodeName", "other"},
    {"headroom.nodeLabels", "{zone: b}"},
    {"headroom.logLevel", "debug"},
    {"headroom.hardGrace", "2s"},
    {"headroom.evictionUnit", "process"},
    {"headroom.evictStaticPods", "culprit"},
    {"headroom.swapAware", "false"},
    {"headroom.thrashAware", "true"},
    {"headroom.kernelMemAvailable", "60Mi"},
    {"headroom.oomScoreAdj", "mirror"},
    {"headroom.fastestFill", "77Gi"},
    {"headroom.checkFloor", "3ms"},
    {"headroom.checkCeiling", "900ms"},
    {"headroom.sweepPeriod", "2s"},
    {"headroom.selfCheckPeriod", "2h"},
    {"headroom.cpuBudget", "20%"},
    {"headroom.bpf", "none"},
    {"headroom.pressure.memory.threshold", "30%"},
    {"headroom.pressure.memory.grace", "11s"},
    {"headroom.pressure.memory.window", "2s"},
    {"headroom.podLimits.reclaim", "true"},
    {"headroom.podLimits.rescue.ceiling", "160%"},
    {"headroom.podLimits.rescue.margin", "7%"},
    {"headroom.coldMemory.below", "30%"},
    {"headroom.coldMemory.step", "8Mi"},
    {"headroom.coldMemory.refaultLimit", "12%"},
    {"headroom.coldMemory.swappiness", "60"},
    {"headroom.podSwap.high", "15%"},
    {"headroom.podSwap.zswapWriteback", "false"},
    {"headroom.podSwap.protectedPriority", "-7"},
    {"headroom.cpuBurst.budget", "25%"},
    {"headroom.cpuBurst.contended", "80%"},
    {"headroom.cpuSuppress.threshold", "25%"},
    {"headroom.cpuSuppress.always", "true"},
    {"headroom.cpuSuppress.batchPriority", "-5"},
    {"headroom.pressure.cpu.threshold", "60%"},
    {"headroom.pressure.cpu.grace", "2m"},
    {"headroom.pressure.cpu.evict", "true"},
    {"headroom.pressure.cpu.evictPeriod", "7m"},
    {"headroom.ladder.reclaim.margin", "11%"},
    {"headroom.ladder.reclaim.step", "32Mi"},
    {"headroom.ladder.squeeze.margin", "6%"},
    {"headroom.ladder.squeeze.maxDuration", "31s"},
    {"headroom.ladder.stuck.waitDuration", "31s"},
    {"headroom.ladder.stuck.relaxDuration", "7s"},
    {"headroom.ladder.stuck.evict", "true"},
    {"headroom.disk.nodefs", "/tmp"},
    {"headroom.disk.imagefs", "/tmp"},
    {"headroom.disk.containerfs", "/tmp"},
    {"headroom.disk.volumes", "\"/v/{uid}/{volume}\""},
    {"headroom.disk.logs", "\"/l/{uid}/{container}\""},
    {"headroom.disk.rootfs", "\"/r/{uid}/{container}\""},
    {"headroom.disk.hostPaths", "true"},
    {"headroom.disk.measurePeriod", "61s"},
    {"headroom.disk.walkRate", "777"},
    {"headroom.disk.removeEmptyDirs", "false"},
    {"headroom.cpus.mode", "observe"},
    {"headroom.cpus.stateFile", "/var/lib/headroom/other"},
    {"headroom.cpus.memoryStateFile", "/var/lib/headroom/other"},
    {"headroom.cpus.excludeIsolated", "true"},
    {"headroom.cpus.partition", "isolated"},
    {"headroom.cpus.guardSharedPool", "false"},
    {"headroom.slices.mode", "observe"},
    {"headroom.slices.persistent", "true"},
    {"headroom.slices.weights", "quadratic"},
    {"headroom.reclaim.containers", "[/bin/true]"},
    {"headroom.reclaim.images", "[/bin/false]"},
    {"headroom.reclaim.timeout", "1m"},
    {"headroom.reclaim.memoryLimit", "256Mi"},
    {"headroom.reclaim.user", "root"},
    {"headroom.kubernetes.runDirectory", "/run/other"},
    {"headroom.kubernetes.stateDirectory", "/var/lib/other"},
    {"headroom.kubernetes.kubelet.url", "\"https://127.0.0.1:10251\""},
    {"headroom.kubernetes.kubelet.tlsServerName", "other"},
    {"headroom.kubernetes.kubelet.insecureSkipTLSVerify", "true"},
    {"headroom.kubernetes.kubelet.caFile", "/ca"},
    {"headroom.kubernetes.kubelet.tokenFile", "/token"},
    {"headroom.kubernetes.kubelet.clientCertFile", "/cert"},
    {"headroom.kubernetes.kubelet.clientKeyFile", "/key"},
    {"headroom.kubernetes.kubelet.timeout", "7s"},
    {"headroom.kubernetes.kubelet.period", "7s"},
    {"headroom.kubernetes.kubelet.configz", "true"},
    {"headroom.kubernetes.api.url", "\"https://127.0.0.1:6444\""},
    {"headroom.kubernetes.api.tlsServerName", "other"},
    {"headroom.kubernetes.api.insecureSkipTLSVerify", "true"},
    {"headroom.kubernetes.api.caFile", "/ca"},
    {"headroom.kubernetes.api.tokenFile", "/token"},
    {"headroom.kubernetes.api.clientCertFile", "/cert"},
    {"headroom.kubernetes.api.clientKeyFile", "/key"},
    {"headroom.kubernetes.api.timeout", "7s"},
    {"headroom.kubernetes.api.afterEviction", "delete"},
    {"headroom.kubernetes.api.events", "false"},
    {"headroom.kubernetes.api.conditions", "true"},
    {"headroom.kubernetes.api.taints", "true"},
    {"headroom.kubernetes.scheduling.softTaints", "true"},
    {"headroom.kubernetes.scheduling.conditions", "true"},
    {"headroom.kubernetes.scheduling.statusAnnotation", "true"},
    {"headroom.kubernetes.scheduling.batchResources", "true"},
    {"headroom.kubernetes.extender.listen", "\"127.0.0.1:9753\""},
    {"headroom.kubernetes.extender.certFile", "/cert"},
    {"headroom.kubernetes.extender.keyFile", "/key"},
    {"headroom.kubernetes.scheduling.contentionThreshold", "31%"},
    {"headroom.kubernetes.scheduling.shortageWithin", "7m"},
    {"headroom.kubernetes.metrics.listen", "\"[::]:9751\""},
    {"headroom.kubernetes.metrics.certFile", "/cert"},
    {"headroom.kubernetes.metrics.keyFile", "/key"},
};

// What a key needs beside the base.
std::string context_of(std::string_view path) {
  if (path.starts_with("headroom.kubernetes.kubelet."))
    return R"(headroom: {kubernetes: {kubelet: {url: "https://127.0.0.1:10250"}}})";
  if (path.ends_with("ReservedCgroup"))
    return "reservedSystemCPUs: \"\"\nkubeReserved: {cpu: 500m}";
  if (path == "cgroupsPerQOS" || path == "qosReserved")
    return "headroom: {slices: {mode: observe}}";
  if (path == "headroom.pressure.cpu.evictPeriod")
    return "headroom: {pressure: {cpu: {evict: true}}}";
  return "";
}

// "a.b.c", "1" → "a: {b: {c: 1}}"
std::string nested(std::string_view path, std::string_view value) {
  const std::size_t dot = path.find('.');
  if (dot == std::string_view::npos) return std::string(path) + ": " + std::string(value);
  return std::string(path.substr(0, dot)) + ": {" + nested(path.substr(dot + 1), value) + "}";
}

// The base, a drop-in with what the key needs, and one that changes it.
Loaded load_with_drop_ins(const std::string& context, const std::string& change) {
  TempDir dir;
  CommandLine line;
  line.config = {dir.write("base.yaml", std::string(kHead) + kBase)};
  std::filesystem::create_directory(dir.path() / "base.yaml.d");
  if (!context.empty()) dir.write("base.yaml.d/10.conf", kHead + context + "\n");
  if (!change.empty()) dir.write("base.yaml.d/20.conf", kHead + change + "\n");
  return load(line);
}

bool waits_for_restart(const Config& config, std::string_view path) {
  return std::any_of(config.settings.begin(), config.settings.end(), [&](const auto& setting) {
    return setting.path == path && !setting.next.empty();
  });
}

Config without_settings(Config config) {
  config.settings.clear();
  return config;
}

TEST(Reload, EveryKeyIsInForceOrReportedAsNeedingARestart) {
  for (const KeyDescription& key : all_keys()) {
    SCOPED_TRACE(key.path);
    const auto other = kOtherValues.find(key.path);
    if (other == kOtherValues.end()) {
      ADD_FAILURE() << "add a value of the key to kOtherValues";
      continue;
    }
    std::string drop_in = nested(other->first, other->second);
    // A key that is a half of another.
    if (key.path.ends_with("clientKeyFile") || key.path.ends_with("clientCertFile")) {
      const auto parent = key.path.substr(0, key.path.rfind('.'));
      drop_in = nested(parent, "{clientCertFile: /cert, clientKeyFile: /key}");
    }
    if (key.path.starts_with("headroom.kubernetes.metrics.") && key.path.ends_with("File"))
      drop_in = nested("headroom.kubernetes.metrics", "{certFile: /cert, keyFile: /key}");
    if (key.path.starts_with("headroom.kubernetes.extender.") && key.path.ends_with("File"))
      drop_in = nested("headroom.kubernetes.extender", "{certFile: /cert, keyFile: /key}");
    const Loaded running = load_with_drop_ins(context_of(key.path), "");
    const Loaded loaded = load_with_drop_ins(context_of(key.path), drop_in);
    if (!running || !loaded) {
      ADD_FAILURE() << drop_in << "\n" << testing::PrintToString(said(running ? loaded : running));
      continue;
    }
    EXPECT_FALSE(without_settings(*loaded) == without_settings(*running))
        << "the value changes nothing";
    const Config adopted = adopt_reload(*loaded, *running);
    EXPECT_EQ(waits_for_restart(adopted, key.path), key.restart);
    EXPECT_TRUE(without_settings(adopted) == without_settings(key.restart ? *running : *loaded));
  }
}

// The path of a reserve's cgroup depends on cgroupDriver, which needs a restart.
TEST(Reload, ACgroupOfAReserveKeepsTheRunningDriver) {
  const std::string reserve =
      "kubeReserved: {memory: 64Mi}\nreservedSystemCPUs: \"\"\n"
      "enforceNodeAllocatable: [pods, kube-reserved]\nheadroom: {slices: {mode: observe}}\n";
  const Loaded running =
      load_with_drop_ins(reserve, "kubeReservedCgroup: /kube.slice\ncgroupDriver: systemd");
  ASSERT_TRUE(running) << testing::PrintToString(said(running));
  const Loaded loaded =
      load_with_drop_ins(reserve, "kubeReservedCgroup: /other.slice\ncgroupDriver: cgroupfs");
  ASSERT_TRUE(loaded) << testing::PrintToString(said(loaded));
  const Loaded expected =
      load_with_drop_ins(reserve, "kubeReservedCgroup: /other.slice\ncgroupDriver: systemd");
  ASSERT_TRUE(expected);
  EXPECT_TRUE(without_settings(adopt_reload(*loaded, *running)) == without_settings(*expected));
  const Loaded invalid =
      load_with_drop_ins(reserve, "kubeReservedCgroup: /no_slice\ncgroupDriver: cgroupfs");
  ASSERT_TRUE(invalid) << testing::PrintToString(said(invalid));
  EXPECT_EQ(adopt_reload(*invalid, *running).reserved.kube, running->reserved.kube);
}

// Else each change of the directory would be another kubelet configuration, and another reload.
TEST(Reload, TheKubeletsConfigurationIsReadFromTheRunningDirectory) {
  const TempDir dir;
  std::filesystem::create_directory(dir.path() / "old");
  std::filesystem::create_directory(dir.path() / "new");
  const std::string kubelet = std::string(kHead) + "maxPods: ";
  CommandLine line;
  line.config = {
      dir.write("f", std::string(kHead) +
                         "headroom: {kubernetes: {runDirectory: " + (dir.path() / "new").string() +
                         ", kubelet: {url: \"https://127.0.0.1:10250\", configz: true}}}\n")};
  const auto old_file = dir.write("old/kubelet.yaml", kubelet + "11\n");
  const auto new_file = dir.write("new/kubelet.yaml", kubelet + "22\n");
  EXPECT_EQ(read(line).configz, configz_version(new_file));
  const LoadResult reloaded = read(line, {.run_dir = dir.path() / "old"});
  EXPECT_TRUE(reloaded.diagnostics.empty());
  EXPECT_EQ(reloaded.configz, configz_version(old_file));
}

}  // namespace
}  // namespace headroom::config
