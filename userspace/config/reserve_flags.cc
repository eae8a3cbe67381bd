// SPDX-License-Identifier: Apache-2.0
#include "config/reserve_flags.h"

#include "config/flag_values.h"

namespace headroom::config {

void apply_reserve_flags(const CommandLine& line, ReservesTold& told, Complaints& complaints) {
  tell_map(line.kube_reserved, "--kube-reserved", "name=amount", told.kube_reserved, complaints);
  tell_map(line.system_reserved, "--system-reserved", "name=amount", told.system_reserved,
           complaints);
  tell_map(line.qos_reserved, "--qos-reserved", "name=amount", told.qos_reserved, complaints);
  tell_word(line.kube_reserved_cgroup, "--kube-reserved-cgroup", told.kube_reserved_cgroup);
  tell_word(line.system_reserved_cgroup, "--system-reserved-cgroup", told.system_reserved_cgroup);
  tell_word(line.reserved_cpus, "--reserved-cpus", told.reserved_cpus);
  tell_word(line.cgroup_root, "--cgroup-root", told.cgroup_root);
  tell_word(line.cgroup_driver, "--cgroup-driver", told.cgroup_driver);
  tell_switch(line.cgroups_per_qos, "--cgroups-per-qos", told.cgroups_per_qos, complaints);
  tell_switch(line.ignore_eviction_threshold, "--experimental-allocatable-ignore-eviction",
              told.ignore_eviction, complaints);
}

}  // namespace headroom::config
