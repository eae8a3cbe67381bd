// SPDX-License-Identifier: Apache-2.0
#include "config/keys.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

namespace headroom::config {
namespace {

constexpr std::size_t kOriginColumn = 48;

std::string key_line(std::size_t depth, std::string_view key, std::string_view value) {
  std::string line(depth * 2, ' ');
  line += key;
  line += ':';
  if (!value.empty()) line.append(" ").append(value);
  return line;
}

std::string with_origin(std::string line, const ConfigSetting& setting) {
  line.resize(std::max(line.size() + 2, kOriginColumn), ' ');
  line += "# " + setting.origin;
  if (!setting.next.empty())
    line += "; from the next start " + setting.next + ", " + setting.next_origin;
  return line + '\n';
}

// Opens the maps on the way to a key that are not open yet; the key's own name.
std::string_view open_parent_maps(std::string_view path, std::set<std::string, std::less<>>& open,
                                  std::size_t& depth, std::string& text) {
  std::size_t dot = path.find('.'), from = 0;
  for (; dot != std::string_view::npos; from = dot + 1, dot = path.find('.', from), ++depth)
    if (open.emplace(path.substr(0, dot)).second)
      text += key_line(depth, path.substr(from, dot - from), "") + '\n';
  return path.substr(from);
}

// JSON is YAML; what is unset is explained in a comment.
std::string value_line(std::size_t depth, std::string_view key, const ConfigSetting& setting) {
  if (setting.value == "null") return with_origin("#" + key_line(depth, key, ""), setting);
  return with_origin(key_line(depth, key, setting.value), setting);
}

using Key = std::pair<std::string_view, std::string_view>;
Key key_of(const ConfigSetting& setting) {
  return {setting.path, setting.entry};
}

}  // namespace

std::string as_yaml(const ConfigSettings& settings) {
  std::string text = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";
  std::set<std::string, std::less<>> open;
  for (const ConfigSetting& setting : settings) {
    std::size_t depth = 0;
    const std::string_view name = open_parent_maps(setting.path, open, depth, text);
    if (setting.entry.empty()) {
      text += value_line(depth, name, setting);
      continue;
    }
    if (open.insert(setting.path).second) text += key_line(depth, name, "") + '\n';
    text += value_line(depth + 1, setting.entry, setting);
  }
  return text;
}

ConfigSettings keep_restart_settings(ConfigSettings loaded, const ConfigSettings& running) {
  for (ConfigSetting& setting : loaded) {
    const KeyDescription* key = find_config_key(setting.path);
    if (!key || !key->restart) continue;
    const auto was = std::find_if(running.begin(), running.end(), [&](const ConfigSetting& other) {
      return key_of(other) == key_of(setting);
    });
    if (was == running.end()) continue;
    ConfigSetting kept = *was;
    kept.next.clear();
    kept.next_origin.clear();
    if (setting.value != kept.value) {
      kept.next = setting.value;
      kept.next_origin = setting.origin;
    }
    setting = std::move(kept);
  }
  return loaded;
}

namespace {

using enum ConfigKeyType;

constexpr std::string_view kNone = "null";
constexpr bool kRestart = true;

constexpr auto kKeys = std::to_array<KeyDescription>({
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
    {"cgroupDriver", kEnum, R"("systemd")", "Which driver names the pods' cgroups",
     "systemd cgroupfs", kRestart},
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
    {"cpuCFSQuota", kBoolean, "true", "Whether limits of CPU are held by quota"},
    {"cpuCFSQuotaPeriod", kDuration, R"("100ms")",
     "The quota's period; another needs the gate CustomCPUCFSQuotaPeriod"},
    {"podPidsLimit", kInteger, "-1",
     "Most processes and threads of a pod; -1: as many as the node has"},
    {"memoryReservationPolicy", kEnum, R"("None")",
     "TieredReservation: requests are memory.min of Guaranteed and memory.low of Burstable pods",
     "None TieredReservation"},
    {"memoryThrottlingFactor", kNumber, kNone,
     "How far from request to limit memory.high is; unset: no memory.high"},
    {"memorySwap.swapBehavior", kEnum, R"("NoSwap")",
     "LimitedSwap: Burstable containers have a share of the node's swap by their requests",
     "NoSwap LimitedSwap"},
    {"singleProcessOOMKill", kBoolean, "false",
     "An OOM kill takes one process, not the whole container"},
    {"cpuManagerPolicy", kEnum, R"("none")", "Whole CPUs of their own for Guaranteed pods",
     "none static"},
    {"cpuManagerPolicyOptions", kStringMap, "{}", "Option of the static policy to true or false"},
    {"cpuManagerReconcilePeriod", kDuration, R"("10s")", "How often all CPU sets are looked at"},
    {"topologyManagerPolicy", kEnum, R"("none")", "CPUs on as few NUMA nodes as will do",
     "none best-effort restricted single-numa-node"},
    {"topologyManagerScope", kEnum, R"("container")", "Which resources are aligned together",
     "container pod"},
    {"topologyManagerPolicyOptions", kStringMap, "{}", "Option to value"},
    {"memoryManagerPolicy", kEnum, R"("None")",
     "Memory and huge pages of NUMA nodes of their own for Guaranteed pods", "None Static"},
    {"reservedMemory", kReservedMemory, "[]", "What pods do not get of each NUMA node"},
    {"featureGates", kBoolMap, "{}",
     "CPUManagerPolicyAlphaOptions and BetaOptions, CustomCPUCFSQuotaPeriod, MemoryQoS and "
     "PodLevelResourceManagers are used, the others are ignored"},
    {"maxPods", kInteger, "110", "How many pods the node admits"},
    {"podsPerCore", kInteger, "0", "How many for each CPU; 0: no such limit"},

    {"headroom.mode", kEnum, R"("observe")", "observe: say what would be done; enforce: do it",
     "observe enforce"},
    {"headroom.listen", kString, R"("127.0.0.1:9750")", "Where HTTP is served; empty: nowhere", "",
     kRestart},
    {"headroom.hostNames", kStrings, kNone,
     "Further names by which HTTP clients know this host, in their Host header", "", kRestart},
    {"headroom.compatibilityMetrics", kBoolean, "false", "Serve container_* names in /metrics", "",
     kRestart},
    {"headroom.metrics.oldNames", kBoolean, "true",
     "Serve renamed metrics under their old names too, until release 0.2", "", kRestart},
    {"headroom.metrics.cgroups", kString, R"("containers")",
     "The cgroups with series in /metrics, besides those of the node", "pods|containers|all",
     kRestart},
    {"headroom.metrics.exclude", kStrings,
     R"(["headroom_cgroup_memory_*active_anon_bytes",)"
     R"("headroom_cgroup_memory_*_thp_bytes",)"
     R"("headroom_cgroup_memory_kernel_stack_bytes",)"
     R"("headroom_cgroup_memory_pagetables_bytes",)"
     R"("headroom_cgroup_memory_shmem_bytes",)"
     R"("headroom_cgroup_memory_slab_*",)"
     R"("headroom_cgroup_memory_swapcached_bytes",)"
     R"("headroom_cgroup_memory_unevictable_bytes",)"
     R"("headroom_cgroup_memory_zswap*",)"
     R"("headroom_cgroup_cpu_burst*",)"
     R"("headroom_cgroup_memory_events_*",)"
     R"("container_cpu_cfs_burst_*",)"
     R"("container_memory_mapped_file",)"
     R"("container_memory_total_*",)"
     R"("container_last_seen"])",
     "Names of metrics that /metrics leaves out, with * and ?", "", kRestart},
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
    {"headroom.nodeName", kString, R"("")", "The node's name; empty: the host's", "", kRestart},
    {"headroom.nodeLabels", kStringMap, "{}", "Labels beside hostname, os and arch"},
    {"headroom.logLevel", kEnum, R"("info")", "What the journal gets", "debug info warning error"},
    {"headroom.hardGrace", kDuration, R"("0s")",
     "What a hard eviction grants between SIGTERM and SIGKILL"},
    {"headroom.evictionUnit", kEnum, R"("pod")",
     "What a kill for memory takes: the pod, its worst container, its largest process",
     "pod container process"},
    {"headroom.evictStaticPods", kEnum, R"("never")",
     "culprit: a static pod over its request and first of the ranking may go", "never culprit"},
    {"headroom.swapAware", kBoolean, "true",
     "With swap, memory.available counts what swap gains and costs; false: as the kubelet does"},
    {"headroom.thrashAware", kBoolean, "false",
     "Without swap, memory.available falls while page cache is read back as fast as it is taken"},
    {"headroom.kernelMemAvailable", kString, R"("50Mi")",
     "Evict when what the kernel can allocate, with what free swap gains, is below this; "
     "by default at most half of the hard threshold of memory.available; 0%: off"},
    {"headroom.oomScoreAdj", kEnum, R"("leave")",
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
    {"headroom.bpf", kEnum, R"("all")",
     "What BPF is used for: the sweep and the kernel's events, the events alone, or nothing",
     "all events none", kRestart},

    {"headroom.pressure.memory.threshold", kString, kNone,
     "Evict when more than this share of the time is lost to the node's shortage; else off"},
    {"headroom.pressure.memory.grace", kDuration, R"("10s")", "How long it must stay so"},
    {"headroom.pressure.memory.window", kDuration, R"("1s")", "The time it is a share of"},
    {"headroom.pressure.cpu.threshold", kString, kNone,
     "CPUPressure holds when a pod loses more of its time than this because the node has no CPU "
     "left; else off"},
    {"headroom.pressure.cpu.grace", kDuration, R"("1m")", "How long it must stay so"},
    {"headroom.pressure.cpu.evict", kBoolean, "false",
     "Then a pod is evicted whose CPU use above its request explains it"},
    {"headroom.pressure.cpu.evictPeriod", kDuration, R"("5m")",
     "At most one pod is evicted for it in this time"},

    {"headroom.ladder.reclaim.margin", kString, kNone,
     "So much of capacity above the threshold of memory.available page cache is taken; else never"},
    {"headroom.ladder.reclaim.step", kQuantity, R"("64Mi")", "How much of it at a time"},
    {"headroom.ladder.squeeze.margin", kString, kNone,
     "So much above it BestEffort pods are held at what they use; else never"},
    {"headroom.ladder.squeeze.maxDuration", kDuration, R"("30s")", "For how long at the most"},
    {"headroom.ladder.stuck.waitDuration", kDuration, kNone,
     "A container that has waited this long at its own memory.high is stuck; unset: not checked"},
    {"headroom.ladder.stuck.relaxDuration", kDuration, R"("0s")",
     "Its memory.high is raised for so long first; 0s: it is another's to raise"},
    {"headroom.ladder.stuck.evict", kBoolean, "false", "Then its pod is evicted"},

    {"headroom.podLimits.reclaim", kBoolean, "false",
     "Reclaim from pods near their own limit in the background, before their tasks must"},
    {"headroom.podLimits.rescue.ceiling", kString, kNone,
     "A pod at its limit has it raised up to this share of it while the node has room; else never"},
    {"headroom.podLimits.rescue.margin", kString, R"("5%")",
     "Of memory: what stays available above the threshold of memory.available"},
    {"headroom.coldMemory.below", kString, kNone,
     "While kernel.memAvailable is below this share of memory, push out cold memory; else never"},
    {"headroom.coldMemory.step", kQuantity, R"("16Mi")", "How much of a pod at first, in a second"},
    {"headroom.coldMemory.refaultLimit", kString, R"("10%")",
     "Less is pushed out if more than this share of it comes back"},
    {"headroom.coldMemory.swappiness", kInteger, kNone,
     "From 0, page cache alone, to 200; else the kernel's. Before Linux 6.11 the kernel's as well"},

    {"headroom.podSwap.high", kString, kNone,
     "A pod over its request is slowed down once it holds this share of the node's swap; else "
     "none"},
    {"headroom.podSwap.zswapWriteback", kBoolean, "true",
     "false: what protected pods swap stays in zswap, and is not written to a device"},
    {"headroom.podSwap.protectedPriority", kInteger, kNone,
     "Pods of at least this priority are protected, beside Guaranteed and critical ones; else "
     "none"},

    {"headroom.cpuBurst.budget", kString, kNone,
     "Pods throttled while their CPUs are idle get cpu.max.burst: this share of the CPUs; else "
     "none"},
    {"headroom.cpuBurst.contended", kString, R"("90%")",
     "A pod's CPUs that are busy for more of the time end its grant"},

    {"headroom.cpuSuppress.threshold", kString, kNone,
     "BestEffort pods get cpu.idle while a pod with a guarantee loses more of its time than this "
     "because the node has no CPU left; else never"},
    {"headroom.cpuSuppress.always", kBoolean, "false",
     "BestEffort pods have cpu.idle at all times, without a threshold"},
    {"headroom.cpuSuppress.batchPriority", kInteger, kNone,
     "Burstable pods of at most this priority as well, the least important first; else none"},

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
    {"headroom.disk.measurePeriod", kDuration, R"("60s")", "How often each pod is measured", "",
     kRestart},
    {"headroom.disk.walkRate", kInteger, "50000", "Directory entries looked at in a second", "",
     kRestart},
    {"headroom.disk.removeEmptyDirs", kBoolean, "true",
     "A pod evicted for a disk loses its emptyDirs"},

    {"headroom.cpus.mode", kEnum, R"("off")",
     "CPU and memory pinning: off, say what would be, or do it", "off observe enforce"},
    {"headroom.cpus.stateFile", kString, R"("/var/lib/headroom/cpu_manager_state")",
     "Which container has which CPUs"},
    {"headroom.cpus.memoryStateFile", kString, R"("/var/lib/headroom/memory_manager_state")",
     "Which container has memory of which NUMA nodes"},
    {"headroom.cpus.excludeIsolated", kBoolean, "false", "Leave the CPUs of isolcpus= alone"},
    {"headroom.cpus.partition", kEnum, R"("member")",
     "cpuset.cpus.partition of pods that have CPUs of their own alone", "member isolated"},
    {"headroom.cpus.guardSharedPool", kBoolean, "true",
     "No container gets exclusive CPUs that pods of the shared pool requested"},

    {"headroom.slices.mode", kEnum, R"("off")",
     "The slices between the root and the pods: ignored, compared, or kept as configured",
     "off observe enforce"},
    {"headroom.slices.persistent", kBoolean, "false", "Their settings survive a reboot"},
    {"headroom.slices.weights", kEnum, R"("linear")",
     "How CPU becomes cpu.weight: the kubelet's formula, or runc's", "linear quadratic"},

    {"headroom.reclaim.containers", kStrings, kNone, "Command that removes dead containers"},
    {"headroom.reclaim.images", kStrings, kNone, "Command that removes unused images"},
    {"headroom.reclaim.timeout", kDuration, R"("2m")", "Most time for both"},
    {"headroom.reclaim.memoryLimit", kQuantity, R"("512Mi")", "Most memory for each"},
    {"headroom.reclaim.user", kString, kNone,
     "The user that runs them; unset: a user of their own, which can do nothing else"},

    {"headroom.kubernetes.runDirectory", kString, R"("/run/headroom-kube")",
     "What headroom-kube writes for headroomd: pods, the kubelet's configuration, its own state",
     "", kRestart},
    {"headroom.kubernetes.stateDirectory", kString, R"("/var/lib/headroom-kube")",
     "Which evictions headroom-kube has reported"},
    {"headroom.kubernetes.kubelet.url", kString, R"("")",
     "URL of the kubelet, such as https://127.0.0.1:10250; empty: no kubelet"},
    {"headroom.kubernetes.kubelet.tlsServerName", kString, R"("")",
     "What its certificate is for, {nodeName} being the node's; else the URL's host"},
    {"headroom.kubernetes.kubelet.insecureSkipTLSVerify", kBoolean, "false",
     "Do not check the server's certificate"},
    {"headroom.kubernetes.kubelet.caFile", kString, kNone,
     "Certificates to believe it by; else the service account's, else the system's"},
    {"headroom.kubernetes.kubelet.tokenFile", kString, kNone,
     "A bearer token, read for each request; else the service account's"},
    {"headroom.kubernetes.kubelet.clientCertFile", kString, kNone, "A certificate of our own"},
    {"headroom.kubernetes.kubelet.clientKeyFile", kString, kNone,
     "Its key, where the certificate's file has it not"},
    {"headroom.kubernetes.kubelet.timeout", kDuration, R"("10s")", "Most time for one request"},
    {"headroom.kubernetes.kubelet.period", kDuration, R"("10s")",
     "How often the kubelet's pods are queried"},
    {"headroom.kubernetes.kubelet.configz", kBoolean, "false",
     "The kubelet's own configuration, from its /configz, is the base of this one"},
    {"headroom.kubernetes.api.url", kString, R"("")",
     "Where the API server is; empty: where KUBERNETES_SERVICE_HOST and _PORT say"},
    {"headroom.kubernetes.api.tlsServerName", kString, R"("")",
     "What its certificate is for, {nodeName} being the node's; else the URL's host"},
    {"headroom.kubernetes.api.insecureSkipTLSVerify", kBoolean, "false",
     "Do not check the server's certificate"},
    {"headroom.kubernetes.api.caFile", kString, kNone,
     "Certificates to believe it by; else the service account's, else the system's"},
    {"headroom.kubernetes.api.tokenFile", kString, kNone,
     "A bearer token, read for each request; else the service account's"},
    {"headroom.kubernetes.api.clientCertFile", kString, kNone, "A certificate of our own"},
    {"headroom.kubernetes.api.clientKeyFile", kString, kNone,
     "Its key, where the certificate's file has it not"},
    {"headroom.kubernetes.api.timeout", kDuration, R"("10s")", "Most time for one request"},
    {"headroom.kubernetes.api.afterEviction", kEnum, R"("none")",
     "What is done in the API after an eviction: nothing, the pod's status, or the pod's deletion "
     "or eviction",
     "none status evict delete"},
    {"headroom.kubernetes.api.events", kBoolean, "true", "With an Event for each"},
    {"headroom.kubernetes.api.conditions", kBoolean, "false", "Patch conditions of the node"},
    {"headroom.kubernetes.api.taints", kBoolean, "false", "Patch taints of pressure of the node"},
    {"headroom.kubernetes.scheduling.softTaints", kBoolean, "false",
     "Taints with the effect PreferNoSchedule while pods lose time to a shortage, or one is "
     "expected"},
    {"headroom.kubernetes.scheduling.conditions", kBoolean, "false",
     "The same as conditions of the node"},
    {"headroom.kubernetes.scheduling.statusAnnotation", kBoolean, "false",
     "The annotation headroom.io/status of the node, by which headroom-kube extender scores it"},
    {"headroom.kubernetes.scheduling.batchResources", kBoolean, "false",
     "Extended resources headroom.io/batch-memory and batch-cpu: what is left beside all requests"},
    {"headroom.kubernetes.scheduling.contentionThreshold", kString, R"("20%")",
     "Contention is a loss of this share of the time, on average over a minute"},
    {"headroom.kubernetes.scheduling.shortageWithin", kDuration, R"("5m")",
     "A shortage is expected if a hard threshold is forecast to be crossed within this time"},
    {"headroom.kubernetes.extender.listen", kString, R"("127.0.0.1:9752")",
     "Where headroom-kube extender serves kube-scheduler; beyond the loopback it needs a "
     "certificate"},
    {"headroom.kubernetes.extender.certFile", kString, kNone,
     "The certificate it serves with; else plain HTTP"},
    {"headroom.kubernetes.extender.keyFile", kString, kNone, "The key of that certificate"},
    {"headroom.kubernetes.metrics.listen", kString, R"("")",
     "Where headroom-kube serves headroomd's metrics over HTTPS, to clients that the API server "
     "allows them; empty: nowhere"},
    {"headroom.kubernetes.metrics.certFile", kString, kNone,
     "The certificate it serves with; else a self-signed one"},
    {"headroom.kubernetes.metrics.keyFile", kString, kNone, "The key of that certificate"},
});

}  // namespace

std::span<const KeyDescription> all_keys() {
  return kKeys;
}

const KeyDescription* find_config_key(std::string_view path) {
  const auto found = std::find_if(kKeys.begin(), kKeys.end(),
                                  [&](const KeyDescription& key) { return key.path == path; });
  return found == kKeys.end() ? nullptr : &*found;
}

}  // namespace headroom::config
