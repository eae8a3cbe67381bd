// SPDX-License-Identifier: Apache-2.0
// Config: all settings of headroomd, from a KubeletConfiguration file and the kubelet's flags.
#pragma once

#include "base/pod_paths.h"
#include "config/cpus_config.h"
#include "config/kubernetes_config.h"
#include "config/setting.h"
#include "config/yaml/complaint.h"
#include "judge/allocatable/allocatable_policy.h"
#include "judge/allocatable/cgroup/cpu_conversion.h"
#include "judge/allocatable/pod_sizing.h"
#include "judge/allocatable/slices_mode.h"

#include <headroom/placement.h>
#include <headroom/policy.h>
#include <headroom/taint.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace headroom::config {

// headroom.disk
struct DiskConfig {
  // Empty: found.
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
  bool compatibility_metrics = true;                   // compatibilityMetrics: container_* names
  bool old_metric_names = true;                        // metrics.oldNames: of renamed metrics
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
  // pressure.memory: joins policy.thresholds when all is read.
  std::optional<Threshold> memory_pressure;
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

}  // namespace headroom::config
