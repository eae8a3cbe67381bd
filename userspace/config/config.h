// SPDX-License-Identifier: Apache-2.0
// Config: all settings of headroomd, from a KubeletConfiguration file and the kubelet's flags.
#pragma once

#include "base/pod_paths.h"
#include "config/keys.h"
#include "config/yaml/yaml.h"
#include "judge/allocatable/allocatable_policy.h"
#include "judge/allocatable/cgroup/cgroup_values.h"
#include "judge/allocatable/pod_sizing.h"
#include "judge/cpuset/hints/hint_merge.h"
#include "judge/cpuset/policy/policy_options.h"
#include "judge/eviction/threshold/threshold_config.h"
#include "judge/limits/burst_plan.h"
#include "judge/limits/cold_memory.h"
#include "judge/limits/limit_plan.h"
#include "judge/limits/pod_swap_plan.h"
#include "judge/limits/suppress_plan.h"
#include "judge/memory/memory_policy.h"

#include <headroom/cpuset.h>
#include <headroom/placement.h>
#include <headroom/policy.h>
#include <headroom/taint.h>
#include <headroom/units.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace headroom::config {

// KubernetesConfig: headroom.kubernetes, the settings of headroom-kube: where pods come from, and
// which API server is notified of evictions.

// The server, and how both sides authenticate. Files are read for every request, because tokens and
// certificates are rotated.
struct ServerConfig {
  std::string url;                // url: "https://127.0.0.1:10250"; "": not asked at all
  std::string tls_name;           // tlsServerName: what its certificate is for; "": the URL's host
  bool insecure = false;          // insecureSkipTLSVerify: the server's certificate is not checked
  std::filesystem::path ca_file;  // caFile; empty: the service account's, or the system's
  std::filesystem::path token_file;             // tokenFile; empty: the service account's, or none
  std::filesystem::path client_cert;            // clientCertFile, beside a key; empty: none
  std::filesystem::path client_key;             // clientKeyFile; empty: it is in the same file
  Duration timeout = std::chrono::seconds(10);  // timeout: most for one request, all in all
  friend bool operator==(const ServerConfig&, const ServerConfig&) = default;
};

// headroom.kubernetes.kubelet
struct KubeletConfig : ServerConfig {
  Duration period = std::chrono::seconds(10);  // period: how often it is asked for its pods
  bool configz = false;  // configz: its KubeletConfiguration is the base of ours
  friend bool operator==(const KubeletConfig&, const KubeletConfig&) = default;
};

// headroom.kubernetes.api
struct ApiConfig : ServerConfig {
  // afterEviction: how far a pod that was evicted is followed up. Each does what those before it
  // do.
  enum class AfterEviction : std::uint8_t {
    kNone,    // the API server is not notified
    kStatus,  // its status says what a kubelet's would
    kEvict,   // and it is evicted through the eviction subresource, which respects disruption
              // budgets
    kDelete,  // and it is deleted
  };
  AfterEviction after_eviction = AfterEviction::kNone;
  bool events = true;       // events: an Event for each eviction; not with kNone
  bool conditions = false;  // conditions: the node's, under types of our own
  bool taints = false;      // taints: the node's, of pressure
  friend bool operator==(const ApiConfig&, const ApiConfig&) = default;

  // Whether anything is sent to the API server.
  bool needs_api() const { return after_eviction != AfterEviction::kNone || conditions || taints; }
};

// headroom.kubernetes.scheduling: what headroom-kube reports of the node to Kubernetes' scheduler.
struct SchedulingConfig {
  bool soft_taints = false;  // softTaints: PreferNoSchedule while there is contention, or will be
  bool conditions = false;   // conditions: the same as conditions of the node
  bool annotation = false;   // statusAnnotation: the readings, for the extender
  bool batch_resources = false;  // batchResources: extended resources of what is really left
  double contention_threshold =
      0.2;  // contentionThreshold: of lost time, as an average of a minute
  Duration shortage_within = std::chrono::minutes(5);  // shortageWithin
  friend bool operator==(const SchedulingConfig&, const SchedulingConfig&) = default;

  // Whether anything is sent to the API server.
  bool needs_api() const { return soft_taints || conditions || annotation || batch_resources; }
};

// headroom.kubernetes.extender: where `headroom-kube extender` serves kube-scheduler.
struct ExtenderConfig {
  std::string listen = "127.0.0.1:9752";  // listen; beyond the loopback with a certificate alone
  std::filesystem::path cert_file;        // certFile; empty: plain HTTP
  std::filesystem::path key_file;         // keyFile; beside a certFile
  friend bool operator==(const ExtenderConfig&, const ExtenderConfig&) = default;
};

// headroom.kubernetes.metrics: headroom-kube serves headroomd's metrics over HTTPS, to clients that
// the API server allows them.
struct MetricsServerConfig {
  std::string listen;               // listen: "0.0.0.0:9751"; "": not served
  std::filesystem::path cert_file;  // certFile; empty: a self-signed certificate
  std::filesystem::path key_file;   // keyFile; beside a certFile
  friend bool operator==(const MetricsServerConfig&, const MetricsServerConfig&) = default;
};

struct KubernetesConfig {
  // runDirectory: pods/ (one file a pod), kubelet.yaml (its configz), status.json.
  std::filesystem::path run_dir = "/run/headroom-kube";
  // stateDirectory: what survives a reboot: which evictions were reported.
  std::filesystem::path state_dir = "/var/lib/headroom-kube";
  KubeletConfig kubelet;
  ApiConfig api;
  SchedulingConfig scheduling;
  ExtenderConfig extender;
  MetricsServerConfig metrics;
  friend bool operator==(const KubernetesConfig&, const KubernetesConfig&) = default;

  std::filesystem::path pods_dir() const { return run_dir / "pods"; }
  std::filesystem::path status_file() const { return run_dir / "status.json"; }
  std::filesystem::path configz_file() const { return run_dir / "kubelet.yaml"; }
};

// CpusConfig: the settings of CPU and memory pinning: those of the kubelet's CPU, memory and
// topology managers, and headroom.cpus.

struct CpusConfig {
  enum class Mode : std::uint8_t { kOff, kObserve, kEnforce };
  enum class Policy : std::uint8_t { kNone, kStatic };
  enum class Partition : std::uint8_t { kMember, kIsolated };
  enum class MemoryManagerPolicy : std::uint8_t { kNone, kStatic };

  Mode mode = Mode::kOff;
  Policy policy = Policy::kNone;                             // cpuManagerPolicy
  CpuPolicyOptions options;                                  // cpuManagerPolicyOptions
  Duration reconcile_period = std::chrono::seconds(10);      // cpuManagerReconcilePeriod
  std::optional<CpuSet> reserved;                            // reservedSystemCPUs
  TopologyPolicy topology_policy = TopologyPolicy::kNone;    // topologyManagerPolicy
  TopologyScope topology_scope = TopologyScope::kContainer;  // topologyManagerScope
  bool prefer_closest_numa = false;                          // topologyManagerPolicyOptions
  bool pod_level_managers = false;  // featureGates.PodLevelResourceManagers
  std::filesystem::path state_file = "/var/lib/headroom/cpu_manager_state";  // stateFile
  bool exclude_isolated = false;                                             // excludeIsolated
  Partition partition = Partition::kMember;                                  // partition
  bool guard_shared_pool = true;                                             // guardSharedPool
  MemoryManagerPolicy memory_policy = MemoryManagerPolicy::kNone;            // memoryManagerPolicy
  ReservedMemory reserved_memory;                                            // reservedMemory
  std::filesystem::path memory_state_file =
      "/var/lib/headroom/memory_manager_state";  // memoryStateFile

  friend bool operator==(const CpusConfig&, const CpusConfig&) = default;
};

inline TopologyRules topology_rules(const CpusConfig& cpus) {
  return {.policy = cpus.topology_policy,
          .scope = cpus.topology_scope,
          .prefer_closest_numa = cpus.prefer_closest_numa,
          .pod_level_managers = cpus.pod_level_managers};
}

constexpr std::string_view name(CpusConfig::Mode mode) {
  switch (mode) {
    case CpusConfig::Mode::kOff:
      return "off";
    case CpusConfig::Mode::kObserve:
      return "observe";
    case CpusConfig::Mode::kEnforce:
      return "enforce";
  }
  return "";
}

constexpr std::string_view name(CpusConfig::Policy policy) {
  return policy == CpusConfig::Policy::kStatic ? "static" : "none";
}

constexpr std::string_view name(CpusConfig::MemoryManagerPolicy policy) {
  return policy == CpusConfig::MemoryManagerPolicy::kStatic ? "Static" : "None";
}

// headroom.disk
struct DiskConfig {
  // Empty: headroomd finds it.
  std::filesystem::path nodefs;
  std::filesystem::path imagefs;
  std::filesystem::path containerfs;
  PodPaths paths;           // volumes, logs, rootfs
  bool host_paths = false;  // hostPaths
  Duration measure_period = std::chrono::seconds(60);
  std::uint64_t walk_rate = 50'000;  // entries a second
  friend bool operator==(const DiskConfig&, const DiskConfig&) = default;
};

// headroom.reclaim: commands; empty: none.
struct ReclaimConfig {
  std::vector<std::string> containers;
  std::vector<std::string> images;
  std::uint64_t memory = std::uint64_t{512} << 20;  // bytes
  std::string user;                                 // empty: that of headroom-commands@.service
  friend bool operator==(const ReclaimConfig&, const ReclaimConfig&) = default;
};

// headroom.slices
struct SlicesConfig {
  SlicesMode mode = SlicesMode::kOff;
  bool persistent = false;  // what is set outlasts a reboot
  WeightFormula weights = WeightFormula::kLinear;
  friend bool operator==(const SlicesConfig&, const SlicesConfig&) = default;
};

// headroom.bpf: what BPF is used for: the sweep and the kernel's events, the events alone beside
// files, or nothing.
enum class BpfUse : std::uint8_t { kAll, kEvents, kNone };

enum class MetricScope : std::uint8_t {
  kPods,        // pods, each as a whole
  kContainers,  // and their containers
  kAll,         // every cgroup
};

// metrics: what a scrape of /metrics has.
struct MetricsConfig {
  bool old_names = true;  // oldNames: of renamed metrics too
  // cgroups: those with series. Each choice has the node's own cgroups: the root, the slices
  // directly below it, and those that hold pods.
  MetricScope cgroups = MetricScope::kContainers;
  // exclude: names of families that are left out, with * and ?. By default those that are large, of
  // interest to few, and in no dashboard.
  std::vector<std::string> exclude = {"headroom_cgroup_memory_*active_anon_bytes",
                                      "headroom_cgroup_memory_*_thp_bytes",
                                      "headroom_cgroup_memory_kernel_stack_bytes",
                                      "headroom_cgroup_memory_pagetables_bytes",
                                      "headroom_cgroup_memory_shmem_bytes",
                                      "headroom_cgroup_memory_slab_*",
                                      "headroom_cgroup_memory_swapcached_bytes",
                                      "headroom_cgroup_memory_unevictable_bytes",
                                      "headroom_cgroup_memory_zswap*",
                                      "headroom_cgroup_cpu_burst*",
                                      "headroom_cgroup_memory_events_*",
                                      "container_cpu_cfs_burst_*",
                                      "container_memory_mapped_file",
                                      "container_memory_total_*",
                                      "container_last_seen"};
  friend bool operator==(const MetricsConfig&, const MetricsConfig&) = default;
};

// podLimits and coldMemory: memory of pods at their own limits, and over their requests.
struct PodMemoryConfig {
  judge_limits::LimitPolicy limits;
  float rescue_margin = 0.05F;  // of memory: above the threshold of memory.available
  judge_limits::ColdPolicy cold;

  bool any() const { return limits.any() || cold.below; }
  friend bool operator==(const PodMemoryConfig&, const PodMemoryConfig&) = default;
};

struct Config {
  Policy policy;
  ConfigSettings settings;  // every setting as it was written, for showing it

  // The `headroom:` section.
  std::string listen = "127.0.0.1:9750";  // listen; "" turns the HTTP endpoint off
  std::filesystem::path pod_manifests = "/etc/headroom/manifests";        // podManifests
  std::filesystem::path audit_log = "/var/log/headroom/evictions.jsonl";  // auditLog
  std::filesystem::path state_dir = "/run/headroom";                      // stateDirectory
  std::string pods_cgroup = "kubepods.slice";  // podsCgroup, below the cgroup root
  // kubeletCgroups, systemCgroups, kubeReservedCgroup, systemReservedCgroup, as configured.
  struct SystemCgroups {
    std::string kubelet, misc, kube_reserved, system_reserved;
    friend bool operator==(const SystemCgroups&, const SystemCgroups&) = default;
  };
  SystemCgroups system_cgroups;
  std::vector<std::string> host_names;  // hostNames: further ones, for HTTP
  bool compatibility_metrics = false;   // compatibilityMetrics: container_* names
  MetricsConfig metrics;
  Duration self_check_period = std::chrono::hours(1);  // selfCheckPeriod: BPF against the files
  BpfUse bpf = BpfUse::kAll;
  float cpu_budget = 0.1F;         // cpuBudget: of one CPU, for the loop
  bool mirror_oom_scores = false;  // oomScoreAdj: mirror
  std::string log_level = "info";  // logLevel: debug, info, warning, error
  DiskConfig disk;
  ReclaimConfig reclaim;
  CpusConfig cpus;
  SlicesConfig slices;
  KubernetesConfig kubernetes;
  // A kubelet is configured (kubernetes.kubelet.url) or was found running: it writes, headroom
  // observes.
  bool kubelet_present = false;
  // pressure.memory and pressure.cpu: join policy.thresholds when all is read.
  std::vector<Threshold> pressure;
  // kernelMemAvailable: joins policy.thresholds when all is read.
  KernelMemThreshold kernel_mem_available;
  bool thrash_aware = false;  // thrashAware
  PodMemoryConfig pod_memory;
  judge_limits::BurstPolicy cpu_burst;
  judge_limits::SuppressPolicy cpu_suppress;
  judge_limits::PodSwapPolicy pod_swap;
  // fastestFill was given; else the daemon measures, and policy has the least that it assumes.
  bool fastest_fill_configured = false;

  // The node as pods are to see it. The taints are what the node starts with: the operator changes
  // them at run time, and the policy holds those in force.
  std::vector<Taint> taints;       // registerWithTaints
  AllocatablePolicy reserved;      // kubeReserved, systemReserved, and how they are enforced
  PodSizing sizing;                // podPidsLimit, cpuCFSQuota, memorySwap, memory QoS
  std::int64_t max_pods = 110;     // maxPods
  std::int64_t pods_per_core = 0;  // podsPerCore; 0: no such limit
  std::string node_name;           // nodeName; "": the host's
  Labels node_labels;              // nodeLabels
  std::filesystem::path node_status = "/run/headroom/node.json";  // nodeStatus; "": no file
  friend bool operator==(const Config&, const Config&) = default;
};

// Where headroomctl run keeps the files that must not survive a reboot.

// Manifests of the pods it started: they end with the machine, and so do these.
inline std::filesystem::path run_manifests(const Config& config) {
  return config.state_dir / "manifests";
}

// Locked from the request for admission until the admitted pod is counted.
inline std::filesystem::path run_lock(const Config& config) {
  return config.state_dir / "run.lock";
}

}  // namespace headroom::config
