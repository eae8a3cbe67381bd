// SPDX-License-Identifier: Apache-2.0
// ReservesTold: what is kept back from pods, and where and how that is enforced, as the file and
// the flags tell it.
#pragma once

#include "config/config.h"
#include "config/told.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::config {

// Each by its key of a KubeletConfiguration.
struct ReservesTold {
  std::optional<Told> kube_reserved;           // kubeReserved
  std::optional<Told> system_reserved;         // systemReserved
  std::optional<Told> qos_reserved;            // qosReserved
  std::optional<Told> kube_reserved_cgroup;    // kubeReservedCgroup
  std::optional<Told> system_reserved_cgroup;  // systemReservedCgroup
  std::optional<Told> reserved_cpus;           // reservedSystemCPUs
  std::optional<Told> cgroup_root;             // cgroupRoot
  std::optional<Told> cgroup_driver;           // cgroupDriver
  std::optional<Told> cgroups_per_qos;         // cgroupsPerQOS: true or false
  std::optional<Told> ignore_eviction;         // --experimental-allocatable-ignore-eviction alone
  std::optional<Told> pods_cgroup;             // headroom.podsCgroup
  std::optional<Told> slices_mode;             // headroom.slices.mode
};

void read_reserves(const Section& document, const std::string& file, ReservesTold& told);

// enforceNodeAllocatable.
struct Enforcements {
  std::vector<std::string> keys;
  std::optional<Told> told;
};

// Into the configuration, together. While
// headroom.slices is off, how reserves are enforced is the kubelet's affair and not judged: it may
// have been told by a flag that we never see.
void settle_reserves(const ReservesTold& told, const Enforcements& enforcements, Config& config,
                     Complaints& complaints);

// Where the kubelet puts its pods, below the cgroup root: ("systemd", "/kubelet") is
// "kubelet.slice/kubelet-kubepods.slice".
std::string pods_cgroup(bool systemd_driver, std::string_view cgroup_root);

}  // namespace headroom::config
