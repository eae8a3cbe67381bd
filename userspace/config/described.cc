// SPDX-License-Identifier: Apache-2.0
#include "config/described.h"

#include <algorithm>
#include <array>

namespace headroom::config {
namespace {

using enum KeyType;

constexpr std::string_view kNone = "null";
constexpr bool kRestart = true;

constexpr auto kKeys = std::to_array<DescribedKey>({
    {"evictionHard", kStringMap,
     R"({"memory.available":"100Mi","nodefs.available":"10%","nodefs.inodesFree":"5%",)"
     R"("imagefs.available":"15%","imagefs.inodesFree":"5%"})",
     "Signal to threshold: evict at once below it"},
    {"mergeDefaultEvictionSettings", kBoolean, "false",
     "Setting one signal of evictionHard keeps the defaults of the others"},
    {"evictionSoft", kStringMap, "{}", "Signal to threshold: evict after its grace period"},
    {"evictionSoftGracePeriod", kStringMap, "{}", "Signal to duration, for each soft threshold"},
    {"evictionMaxPodGracePeriod", kInteger, "0",
     "Most seconds between SIGTERM and SIGKILL of a soft eviction; negative: the pod's own"},
    {"evictionMinimumReclaim", kStringMap, "{}",
     "Signal to amount: how far above its threshold to evict"},
    {"evictionPressureTransitionPeriod", kDuration, R"("5m")",
     "How long a node condition outlasts its cause"},
    {"enforceNodeAllocatable", kStrings, R"(["pods"])",
     "pods: hard thresholds of memory also hold inside the pods' cgroup; with headroom.slices, "
     "what is enforced"},
    {"localStorageCapacityIsolation", kBoolean, "true", "Evict for limits of local storage"},
    {"cgroupDriver", kWord, R"("systemd")", "Who names the pods' cgroups", "systemd cgroupfs",
     kRestart},
    {"cgroupRoot", kString, R"("/")", "The cgroup the pods' is in", "", kRestart},
    {"kubeletCgroups", kString, R"("")", "The kubelet's own cgroup", "", kRestart},
    {"systemCgroups", kString, R"("")", "The cgroup of processes outside containers", "", kRestart},
    {"kubeReservedCgroup", kString, R"("")", "The cgroup kubeReserved is for"},
    {"systemReservedCgroup", kString, R"("")", "The cgroup systemReserved is for"},
    {"registerWithTaints", kTaints, "[]", "Taints the node starts with"},
    {"cgroupsPerQOS", kBoolean, "true", "Whether there are slices for pods and for their classes",
     "", kRestart},
    {"qosReserved", kStringMap, "{}",
     "Share of the memory that better classes requested and lesser ones may not use"},
    {"kubeReserved", kStringMap, "{}", "Resource to quantity: kept back from pods"},
    {"systemReserved", kStringMap, "{}", "Resource to quantity: kept back from pods"},
    {"reservedSystemCPUs", kString, R"("")", "CPUs kept back from pods"},
    {"cpuManagerPolicy", kWord, R"("none")", "Whole CPUs of their own for Guaranteed pods",
     "none static"},
    {"cpuManagerPolicyOptions", kStringMap, "{}", "Option of the static policy to true or false"},
    {"cpuManagerReconcilePeriod", kDuration, R"("10s")", "How often all CPU sets are looked at"},
    {"topologyManagerPolicy", kWord, R"("none")", "CPUs on as few NUMA nodes as will do",
     "none best-effort restricted single-numa-node"},
    {"topologyManagerScope", kWord, R"("container")", "What is aligned as one", "container pod"},
    {"topologyManagerPolicyOptions", kStringMap, "{}", "Option to value"},
    {"featureGates", kFlagMap, "{}",
     "CPUManagerPolicyAlphaOptions and BetaOptions are heeded, the others let be"},
    {"maxPods", kInteger, "110", "How many pods the node admits"},
    {"podsPerCore", kInteger, "0", "How many for each CPU; 0: no such limit"},

    {"headroom.mode", kWord, R"("observe")", "observe: say what would be done; enforce: do it",
     "observe enforce"},
    {"headroom.listen", kString, R"("127.0.0.1:9750")", "Where HTTP is served; empty: nowhere", "",
     kRestart},
    {"headroom.compatibilityMetrics", kBoolean, "true", "Serve container_* names in /metrics", "",
     kRestart},
    {"headroom.podManifests", kString, R"("/etc/headroom/manifests")", "Directory of v1 Pods"},
    {"headroom.podsCgroup", kString, kNone,
     "The pods' cgroup, below the cgroup root; else from cgroupDriver and cgroupRoot", "",
     kRestart},
    {"headroom.auditLog", kString, R"("/var/log/headroom/evictions.jsonl")",
     "One JSON line per eviction", "", kRestart},
    {"headroom.stateDirectory", kString, R"("/run/headroom")", "What outlives a restart", "",
     kRestart},
    {"headroom.nodeStatus", kString, R"("/run/headroom/node.json")",
     "The node's status as a v1 Node; empty: no file", "", kRestart},
    {"headroom.nodeName", kString, R"("")", "What the node is called; empty: the host's name"},
    {"headroom.nodeLabels", kStringMap, "{}", "Labels beside hostname, os and arch"},
    {"headroom.logLevel", kWord, R"("info")", "What the journal gets", "debug info warning error"},
    {"headroom.hardGrace", kDuration, R"("0s")",
     "What a hard eviction grants between SIGTERM and SIGKILL"},
    {"headroom.evictStaticPods", kWord, R"("never")",
     "culprit: a static pod over its request and first of the ranking may go", "never culprit"},
    {"headroom.oomScoreAdj", kWord, R"("leave")",
     "mirror: the processes of pods have oom_score_adj by their place in the ranking",
     "leave mirror"},
    {"headroom.fastestFill", kQuantity, kNone,
     "Bytes a second this machine can fill; else measured at start"},
    {"headroom.checkFloor", kDuration, R"("2ms")", "No check comes sooner after the last"},
    {"headroom.checkCeiling", kDuration, R"("1s")", "No check comes later after the last"},
    {"headroom.sweepPeriod", kDuration, R"("1s")", "How often every cgroup is read in calm"},
    {"headroom.selfCheckPeriod", kDuration, R"("1h")", "How often BPF is compared with the files"},
    {"headroom.cpuBudget", kString, R"("10%")",
     "Of one CPU, for the loop: beyond it cgroups are read less often"},
    {"headroom.bpf", kWord, R"("all")",
     "What BPF is used for: the sweep and the kernel's events, the events alone, or nothing",
     "all events none", kRestart},

    {"headroom.pressure.memory.threshold", kString, kNone,
     "Evict when more than this share of the time is lost to the node's shortage; else off"},
    {"headroom.pressure.memory.grace", kDuration, R"("10s")", "How long it must stay so"},
    {"headroom.pressure.memory.window", kDuration, R"("1s")", "The time it is a share of"},

    {"headroom.disk.nodefs", kString, kNone, "A path on nodefs; else found", "", kRestart},
    {"headroom.disk.imagefs", kString, kNone, "A path on imagefs; else found", "", kRestart},
    {"headroom.disk.containerfs", kString, kNone, "A path on containerfs; else found", "",
     kRestart},
    {"headroom.disk.volumes", kString,
     R"("/var/lib/kubelet/pods/{uid}/volumes/kubernetes.io~{plugin}/{volume}")",
     "Where a pod's volumes are", "", kRestart},
    {"headroom.disk.logs", kString, R"("/var/log/pods/{namespace}_{name}_{uid}/{container}")",
     "Where a container's logs are", "", kRestart},
    {"headroom.disk.rootfs", kString, kNone, "Where its writable layer is; else found", "",
     kRestart},
    {"headroom.disk.hostPaths", kBoolean, "false", "Count hostPath volumes in the ranking", "",
     kRestart},
    {"headroom.disk.measureEvery", kDuration, R"("60s")", "How often each pod is measured", "",
     kRestart},
    {"headroom.disk.walkRate", kInteger, "50000", "Directory entries looked at in a second", "",
     kRestart},
    {"headroom.disk.removeEmptyDirs", kBoolean, "true",
     "A pod evicted for a disk loses its emptyDirs"},

    {"headroom.cpus.mode", kWord, R"("off")", "CPU pinning: off, say what would be, or do it",
     "off observe enforce"},
    {"headroom.cpus.stateFile", kString, R"("/var/lib/headroom/cpu_manager_state")",
     "Who has which CPUs"},
    {"headroom.cpus.excludeIsolated", kBoolean, "false", "Leave the CPUs of isolcpus= alone"},
    {"headroom.cpus.partition", kWord, R"("member")",
     "cpuset.cpus.partition of pods that have CPUs of their own alone", "member isolated"},

    {"headroom.slices.mode", kWord, R"("off")",
     "The slices between the root and the pods: let be, compared, or kept as they should be",
     "off observe enforce"},
    {"headroom.slices.persistent", kBoolean, "false", "What is set of them outlasts a reboot"},
    {"headroom.slices.weights", kWord, R"("linear")",
     "How CPU becomes cpu.weight: the kubelet's formula, or runc's", "linear quadratic"},

    {"headroom.reclaim.containers", kStrings, kNone, "Command that removes dead containers"},
    {"headroom.reclaim.images", kStrings, kNone, "Command that removes unused images"},
    {"headroom.reclaim.timeout", kDuration, R"("2m")", "Most time for both"},
    {"headroom.reclaim.memory", kQuantity, R"("512Mi")", "Most memory for each"},
});

}  // namespace

std::span<const DescribedKey> described_keys() {
  return kKeys;
}

const DescribedKey* described(std::string_view path) {
  const auto found = std::find_if(kKeys.begin(), kKeys.end(),
                                  [&](const DescribedKey& key) { return key.path == path; });
  return found == kKeys.end() ? nullptr : &*found;
}

}  // namespace headroom::config
