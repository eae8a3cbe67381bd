// SPDX-License-Identifier: Apache-2.0
#include "config/load/reserve_flags.h"

#include "config/flags/flag_values.h"

namespace headroom::config {

void apply_reserve_flags(const CommandLine& line, ReservedSettings& settings,
                         Diagnostics& diagnostics) {
  apply_map_flag(line.kube_reserved, "--kube-reserved", "name=amount", settings.kube_reserved,
                 diagnostics);
  apply_map_flag(line.system_reserved, "--system-reserved", "name=amount", settings.system_reserved,
                 diagnostics);
  apply_map_flag(line.qos_reserved, "--qos-reserved", "name=amount", settings.qos_reserved,
                 diagnostics);
  apply_string_flag(line.kube_reserved_cgroup, "--kube-reserved-cgroup",
                    settings.kube_reserved_cgroup);
  apply_string_flag(line.system_reserved_cgroup, "--system-reserved-cgroup",
                    settings.system_reserved_cgroup);
  apply_string_flag(line.reserved_cpus, "--reserved-cpus", settings.reserved_cpus);
  apply_string_flag(line.cgroup_root, "--cgroup-root", settings.cgroup_root);
  apply_string_flag(line.cgroup_driver, "--cgroup-driver", settings.cgroup_driver);
  apply_bool_flag(line.cgroups_per_qos, "--cgroups-per-qos", settings.cgroups_per_qos, diagnostics);
  apply_bool_flag(line.ignore_eviction_threshold, "--experimental-allocatable-ignore-eviction",
                  settings.ignore_eviction, diagnostics);
}

}  // namespace headroom::config
