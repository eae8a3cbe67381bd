// SPDX-License-Identifier: Apache-2.0
// CommandLine: the arguments of headroomd, as they were written.
//
// Values are kept as they were written and understood by load(), beside the file they override: so
// a bad flag is one complaint among the others.
#pragma once

#include "config/yaml/located_value.h"
#include "config/yaml/yaml.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace headroom::config {

struct CommandLine {
  // Every use of a flag that takes a value, in order. Empty: not given.
  using FlagValues = std::vector<std::string>;

  // The kubelet's flags.
  FlagValues config;
  FlagValues config_dir;
  FlagValues eviction_hard;
  FlagValues eviction_soft;
  FlagValues eviction_soft_grace_period;
  FlagValues eviction_minimum_reclaim;
  FlagValues eviction_max_pod_grace_period;
  FlagValues eviction_pressure_transition_period;
  FlagValues enforce_node_allocatable;
  FlagValues local_storage_isolation;    // "true" where no value is given
  FlagValues kernel_memcg_notification;  // likewise
  FlagValues register_with_taints;
  FlagValues node_labels;
  FlagValues hostname_override;
  FlagValues max_pods;
  FlagValues pods_per_core;
  FlagValues cpu_manager_policy;
  FlagValues cpu_manager_policy_options;
  FlagValues cpu_manager_reconcile_period;
  FlagValues topology_manager_policy;
  FlagValues topology_manager_policy_options;
  FlagValues topology_manager_scope;
  FlagValues memory_manager_policy;
  FlagValues reserved_memory;
  FlagValues kube_reserved;
  FlagValues system_reserved;
  FlagValues qos_reserved;
  FlagValues kube_reserved_cgroup;
  FlagValues system_reserved_cgroup;
  FlagValues reserved_cpus;
  FlagValues cgroup_root;
  FlagValues cgroup_driver;
  FlagValues cgroups_per_qos;            // "true" where no value is given
  FlagValues ignore_eviction_threshold;  // likewise
  FlagValues cpu_cfs_quota;              // likewise
  FlagValues cpu_cfs_quota_period;
  FlagValues pod_max_pids;

  // headroomd's own flags.
  FlagValues mode;
  FlagValues listen;
  FlagValues metrics_listen;
  bool check_config = false;
  bool restore = false;
  bool version = false;
  bool help = false;
};

tl::expected<CommandLine, Diagnostics> parse_command_line(int argc, const char* const* argv);

// What --help prints.
std::string help_text();

// The kinds of value that a flag takes. A flag overrides the file.

// "memory.available<100Mi,nodefs.available<10%": given at all, it replaces the file's map, and
// given again it adds to itself (the last of a key stays), as the kubelet's flags do. `form` is
// what a pair looks like: "signal<value".
void apply_map_flag(const CommandLine::FlagValues& values, const std::string& flag,
                    std::string_view form, std::optional<LocatedValue>& value,
                    Diagnostics& diagnostics);
void apply_list_flag(const CommandLine::FlagValues& values, const std::string& flag,
                     std::optional<LocatedValue>& value);
void apply_string_flag(const CommandLine::FlagValues& values, const std::string& flag,
                       std::optional<LocatedValue>& value);
// Absent: not given, or invalid and reported.
std::optional<bool> parse_bool_flag(const CommandLine::FlagValues& values, const std::string& flag,
                                    Diagnostics& diagnostics);
std::optional<std::int64_t> parse_count_flag(const CommandLine::FlagValues& values,
                                             const std::string& flag, Diagnostics& diagnostics);
void apply_bool_flag(const CommandLine::FlagValues& values, const std::string& flag,
                     std::optional<LocatedValue>& value, Diagnostics& diagnostics);

}  // namespace headroom::config
