// SPDX-License-Identifier: Apache-2.0
// Settings that sections of the configuration fill: evictions, the sizes of pods, what is reserved.
#pragma once

#include "config/config.h"
#include "config/flags/command_line.h"
#include "config/yaml/located_value.h"
#include "config/yaml/section.h"
#include "config/yaml/yaml.h"
#include "judge/allocatable/pod_sizing.h"

#include <headroom/policy.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::config {

// EvictionSettings: the eviction settings as the file and the flags have them, each with its place.
//
// Thresholds cannot be checked one by one (a soft one needs a grace period that another map or flag
// holds), so they are collected first and then passed to the judge's builder; each of its errors is
// reported with the line it came from.

struct EvictionSettings {
  std::optional<LocatedValue> hard;  // absent: the kubelet's defaults; empty: none
  std::optional<LocatedValue> soft;
  std::optional<LocatedValue> soft_grace;
  std::optional<LocatedValue> min_reclaim;
  std::optional<LocatedValue> enforce_node_allocatable;  // absent: pods
  bool merge_defaults = false;
};

// enforceNodeAllocatable, without the keys that are complained of.
std::vector<std::string> collect_enforcements(const EvictionSettings& settings,
                                              Diagnostics& diagnostics);

// The policy's thresholds; complaints are added for what is wrong, and then the list is partial.
std::vector<Threshold> build_eviction_thresholds(const EvictionSettings& settings,
                                                 const std::vector<std::string>& enforcements,
                                                 Diagnostics& diagnostics);

// PodSizingSettings: what decides about the cgroups of every pod, as the file and the flags have
// it.

struct PodSizingSettings {
  PodSizingConfig values;
  struct Location {
    std::string file;  // or "--pod-max-pids"
    int line = 0;
  };
  std::map<std::string, Location> locations;  // by field, for fields that were set
};

void read_sizing(const Section& document, const std::string& file, PodSizingSettings& settings,
                 Diagnostics& warnings);
void apply_sizing_flags(const CommandLine& line, PodSizingSettings& settings,
                        Diagnostics& diagnostics);

// Writes all of them into the configuration. Beside a kubelet the values are the kubelet's to
// check: another version may accept more of them, and values that are not understood here count as
// unset.
void resolve_pod_sizing(const PodSizingSettings& settings, Config& config,
                        Diagnostics& diagnostics);

// ReservedSettings: what is reserved from pods, and where and how that is enforced, as the file and
// the flags have it.

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
