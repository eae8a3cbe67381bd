// SPDX-License-Identifier: Apache-2.0
// Pod: a workload as Kubernetes describes it, from any source.
#pragma once

#include <headroom/placement.h>
#include <headroom/quantity.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace headroom {

enum class QosClass : std::uint8_t { kGuaranteed, kBurstable, kBestEffort };
constexpr std::string_view name(QosClass qos) {
  switch (qos) {
    case QosClass::kGuaranteed:
      return "Guaranteed";
    case QosClass::kBurstable:
      return "Burstable";
    case QosClass::kBestEffort:
      return "BestEffort";
  }
  return "";
}

// Resource name ("cpu", "memory", "ephemeral-storage", "hugepages-2Mi") → quantity.
using ResourceList = std::map<std::string, Quantity, std::less<>>;

struct Container {
  std::string name;
  ResourceList requests;
  ResourceList limits;
  bool sidecar = false;                 // an init container with restartPolicy: Always
  std::vector<std::string> pre_stop{};  // lifecycle.preStop.exec.command; empty: none
};

struct Volume {
  // The kinds that the kubelet counts as local, and all others.
  enum class Kind : std::uint8_t { kEmptyDir, kHostPath, kConfigMap, kGitRepo, kOther };
  std::string name;
  Kind kind = Kind::kOther;
  bool in_memory = false;              // emptyDir.medium: Memory, or huge pages
  std::optional<Quantity> size_limit;  // emptyDir.sizeLimit
  std::string host_path;               // hostPath.path
  friend bool operator==(const Volume&, const Volume&) = default;
};

// Where the Pod's description comes from.
enum class PodSource : std::uint8_t { kManifest, kCgroupTree };

struct Pod {
  std::string uid;  // as in the cgroup's name, with dashes
  std::string name;
  std::string pod_namespace = "default";
  PodSource source = PodSource::kManifest;

  std::int32_t priority = 0;
  std::string priority_class;
  bool is_static = false;  // static or mirror pod: critical, never evicted
  std::optional<QosClass>
      declared_qos;  // status.qosClass: immutable, has precedence over the specification
  std::optional<std::chrono::seconds> termination_grace;  // terminationGracePeriodSeconds

  std::vector<Container> init_containers;
  std::vector<Container> containers;
  ResourceList overhead;
  std::optional<Container> pod_level;  // spec.resources (PodLevelResources), as requests and limits

  Labels labels;
  Labels annotations;
  Placement placement;
  std::vector<Volume> volumes;
  // Paths on a host without a container runtime, from annotations: patterns as in headroom.disk.
  std::string rootfs_path;  // headroom.io/rootfs
  std::string logs_path;    // headroom.io/logs
  // Of a kubelet's pod: the fields that could not be parsed, one message each. They are ignored;
  // all other fields count.
  std::vector<std::string> ignored_fields;
};

inline constexpr std::int32_t kSystemCriticalPriority = 2'000'000'000;

}  // namespace headroom
