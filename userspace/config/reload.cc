// SPDX-License-Identifier: Apache-2.0
#include "config/reload.h"

#include "judge/allocatable/cgroup/cgroup_name.h"

#include <utility>

namespace headroom::config {
namespace {

// The path that the configured cgroup has under the running driver; of a name that is invalid
// there, what is in force stays.
void adopt_driver(Reserve& loaded, const std::string& configured, CgroupDriver driver,
                  const Reserve& running) {
  if (loaded.path.empty()) return;
  if (auto path = reserved_path(driver, configured))
    loaded.path = std::move(*path);
  else
    loaded = running;
}

}  // namespace

// tests/config/reload_test.cc walks every key: a new one that needs a restart must be added here.
Config adopt_reload(Config loaded, const Config& running) {
  Config adopted = std::move(loaded);
  adopted.settings = keep_restart_settings(std::move(adopted.settings), running.settings);
  adopted.listen = running.listen;
  adopted.host_names = running.host_names;
  adopted.compatibility_metrics = running.compatibility_metrics;
  adopted.metrics = running.metrics;
  adopted.audit_log = running.audit_log;
  adopted.state_dir = running.state_dir;
  adopted.node_status = running.node_status;
  adopted.node_name = running.node_name;
  adopted.bpf = running.bpf;
  adopted.disk = running.disk;
  adopted.kubernetes.run_dir = running.kubernetes.run_dir;
  // The sources are opened for the pods' cgroup.
  adopted.pods_cgroup = running.pods_cgroup;
  adopted.system_cgroups.kubelet = running.system_cgroups.kubelet;
  adopted.system_cgroups.misc = running.system_cgroups.misc;
  adopt_driver(adopted.reserved.kube, adopted.system_cgroups.kube_reserved, running.reserved.driver,
               running.reserved.kube);
  adopt_driver(adopted.reserved.system, adopted.system_cgroups.system_reserved,
               running.reserved.driver, running.reserved.system);
  adopted.reserved.driver = running.reserved.driver;
  adopted.reserved.kubepods = running.reserved.kubepods;
  return adopted;
}

}  // namespace headroom::config
