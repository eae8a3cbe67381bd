// SPDX-License-Identifier: Apache-2.0
// ReservedSettings: what is reserved from pods, and where and how that is enforced, as the file and
// the flags have it.
#pragma once

#include "config/config.h"
#include "config/yaml/located_value.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::config {

// Each by its key of a KubeletConfiguration.
struct ReservedSettings {
  std::optional<LocatedValue> kube_reserved;           // kubeReserved
  std::optional<LocatedValue> system_reserved;         // systemReserved
  std::optional<LocatedValue> qos_reserved;            // qosReserved
  std::optional<LocatedValue> kube_reserved_cgroup;    // kubeReservedCgroup
  std::optional<LocatedValue> system_reserved_cgroup;  // systemReservedCgroup
  std::optional<LocatedValue> reserved_cpus;           // reservedSystemCPUs
  std::optional<LocatedValue> cgroup_root;             // cgroupRoot
  std::optional<LocatedValue> cgroup_driver;           // cgroupDriver
  std::optional<LocatedValue> cgroups_per_qos;         // cgroupsPerQOS: true or false
  std::optional<LocatedValue> ignore_eviction;  // --experimental-allocatable-ignore-eviction alone
  std::optional<LocatedValue> pods_cgroup;      // headroom.podsCgroup
  std::optional<LocatedValue> slices_mode;      // headroom.slices.mode
};

void read_reserved_settings(const Section& document, const std::string& file,
                            ReservedSettings& settings);

// enforceNodeAllocatable.
struct Enforcements {
  std::vector<std::string> keys;
  std::optional<LocatedValue> settings;
};

// Writes all of them into the configuration. While headroom.slices is off, how reservations are
// enforced is the kubelet's business and not checked: a flag may have set it that is not visible
// here.
void resolve_reserved_settings(const ReservedSettings& settings, const Enforcements& enforcements,
                               Config& config, Diagnostics& diagnostics);

// Where the kubelet puts its pods, below the cgroup root: ("systemd", "/kubelet") is
// "kubelet.slice/kubelet-kubepods.slice".
std::string pods_cgroup(bool systemd_driver, std::string_view cgroup_root);

}  // namespace headroom::config
