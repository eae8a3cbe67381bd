// SPDX-License-Identifier: Apache-2.0
// AllocatablePolicy: what is reserved, for which slice, and how it is enforced; read from the
// fields of a KubeletConfiguration and checked by its rules (kubelet:
// cm/node_container_manager_linux.go, apis/config/validation).
#pragma once

#include "judge/allocatable/amounts.h"
#include "judge/allocatable/cgroup/cgroup_name.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace headroom {

// SlicesMode: how the cgroups between the root and the pods are treated.

enum class SlicesMode : std::uint8_t {
  kOff,
  kObserve,  // compared with the desired values, and reported
  kEnforce,  // and corrected
};
constexpr std::string_view name(SlicesMode mode) {
  switch (mode) {
    case SlicesMode::kOff:
      return "off";
    case SlicesMode::kObserve:
      return "observe";
    case SlicesMode::kEnforce:
      return "enforce";
  }
  return "";
}

// The configured values; each comment names the field. Flags have other names and the same meaning.
struct AllocatableConfig {
  std::map<std::string, std::string> kube_reserved{};    // kubeReserved
  std::map<std::string, std::string> system_reserved{};  // systemReserved
  std::string kube_reserved_cgroup{};                    // kubeReservedCgroup
  std::string system_reserved_cgroup{};                  // systemReservedCgroup
  // reservedSystemCPUs: how many CPUs it names. They replace what is reserved of "cpu".
  std::optional<std::int64_t> reserved_cpus{};
  std::vector<std::string> enforce{"pods"};           // enforceNodeAllocatable
  bool cgroups_per_qos = true;                        // cgroupsPerQOS
  std::string cgroup_root{};                          // cgroupRoot; "" is "/"
  CgroupDriver driver = CgroupDriver::kSystemd;       // cgroupDriver
  std::map<std::string, std::string> qos_reserved{};  // qosReserved
  bool ignore_eviction_threshold = false;  // experimentalNodeAllocatableIgnoreEvictionThreshold
};

enum class Enforcement : std::uint8_t {
  kNone,
  kCompressible,  // "-compressible": cpu.weight alone
  kAll,           // cpu.weight, memory.max, pids.max, hugetlb
};

struct Reserve {
  Amounts amounts{};
  Enforcement enforcement = Enforcement::kNone;
  std::string path{};  // of the cgroup it is written to; never empty if it is enforced
  friend bool operator==(const Reserve&, const Reserve&) = default;
};

struct AllocatablePolicy {
  Reserve kube{};
  Reserve system{};
  bool enforce_pods = true;
  CgroupDriver driver = CgroupDriver::kSystemd;
  std::optional<CgroupName> kubepods{};  // absent: no cgroupsPerQOS, the tree is not managed here
  std::optional<int> qos_reserved_memory{};  // per cent
  bool ignore_eviction_threshold = false;
  friend bool operator==(const AllocatablePolicy&, const AllocatablePolicy&) = default;
};

// All errors are returned.
tl::expected<AllocatablePolicy, std::vector<SettingError>> allocatable_policy(
    const AllocatableConfig& configured);

}  // namespace headroom
