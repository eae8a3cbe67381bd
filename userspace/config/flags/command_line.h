// SPDX-License-Identifier: Apache-2.0
// CommandLine: what headroomd was started with, word for word.
//
// Values are kept as they were written and understood by load(), beside the file they override: so
// a bad flag is one complaint among the others.
#pragma once

#include "config/yaml/complaint.h"

#include <string>
#include <vector>

#include <tl/expected.hpp>

namespace headroom::config {

struct CommandLine {
  // Every use of a flag that takes a value, in order. Empty: not given.
  using Uses = std::vector<std::string>;

  // The kubelet's.
  Uses config;
  Uses config_dir;
  Uses eviction_hard;
  Uses eviction_soft;
  Uses eviction_soft_grace_period;
  Uses eviction_minimum_reclaim;
  Uses eviction_max_pod_grace_period;
  Uses eviction_pressure_transition_period;
  Uses enforce_node_allocatable;
  Uses local_storage_isolation;    // "true" where no value is given
  Uses kernel_memcg_notification;  // likewise
  Uses register_with_taints;
  Uses node_labels;
  Uses hostname_override;
  Uses max_pods;
  Uses pods_per_core;
  Uses cpu_manager_policy;
  Uses cpu_manager_policy_options;
  Uses cpu_manager_reconcile_period;
  Uses topology_manager_policy;
  Uses topology_manager_policy_options;
  Uses topology_manager_scope;
  Uses kube_reserved;
  Uses system_reserved;
  Uses qos_reserved;
  Uses kube_reserved_cgroup;
  Uses system_reserved_cgroup;
  Uses reserved_cpus;
  Uses cgroup_root;
  Uses cgroup_driver;
  Uses cgroups_per_qos;            // "true" where no value is given
  Uses ignore_eviction_threshold;  // likewise
  Uses cpu_cfs_quota;              // likewise
  Uses cpu_cfs_quota_period;
  Uses pod_max_pids;

  // Ours.
  Uses mode;
  Uses listen;
  bool check_config = false;
  bool version = false;
  bool help = false;
};

tl::expected<CommandLine, Complaints> parse_command_line(int argc, const char* const* argv);

// What --help prints.
std::string help_text();

}  // namespace headroom::config
