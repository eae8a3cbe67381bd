// SPDX-License-Identifier: Apache-2.0
// CpuManager: the kubelet's static CPU manager for this host: the active pods, the assignment of
// CPUs, and with them of memory (MemoryManager), the state file, and the cgroups. Used by one
// thread; it may block (CpuWorker).
//
// Each reconcile() starts from the actual state. The state file is written before the cgroups, so
// that a crash in between leaves a file that is ahead of them, not behind; at the start a running
// container's CPUs have precedence over the file.
#pragma once

#include "act/cpus/cpu_checkpoint.h"
#include "act/cpus/cpuset_units.h"
#include "config/config.h"
#include "daemon/cpus/cpuset_updater.h"
#include "daemon/cpus/memory_manager.h"
#include "daemon/cpus/present_pods.h"
#include "judge/cpuset/assign_cpus.h"
#include "judge/cpuset/cpu_admission.h"
#include "observe/node/cpu_topology.h"
#include "report/view/cpus_view.h"

#include <headroom/pod.h>
#include <headroom/topology.h>
#include <headroom/units.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace headroom::daemon {

struct CpuManagerOptions {
  config::CpusConfig cpus;
  MilliCpu reserved{};  // systemReserved and kubeReserved together
};

// Errors of the configuration with respect to this machine.
PolicyErrors machine_config_errors(const CpuManagerOptions& options, const Topology& topology);

class CpuManager {
 public:
  struct Setup {
    CpusetUpdater::Setup cpusets;
    // systemd is to keep no setting of the cgroup's unit, which was released or is gone. False: not
    // yet done; it is called again.
    std::function<bool(const std::string& path)> remove_settings;
    std::filesystem::path state_dir;  // of CpusetUnits
    std::string pods_cgroup;
    std::filesystem::path sys = "/sys";
    IdentifyContainer identify;
    AtStep at_step = nullptr;
    // Like cpusets.write, for the NUMA nodes of memory.
    std::function<Result<>(const SeenCgroup& cgroup, NodeSet nodes)> write_nodes = nullptr;
  };
  CpuManager(Setup setup, CpuManagerOptions options);
  CpuManager(const CpuManager&) = delete;
  CpuManager& operator=(const CpuManager&) = delete;

  void reconfigure(CpuManagerOptions options);
  void set_declared_pods(std::vector<Pod> manifests) { pods_.set_declared(std::move(manifests)); }
  void reconcile();
  // Whether another program changed a cpuset, or CPUs went online or offline. Reads a file for each
  // cgroup.
  bool drifted() const;
  // Moves containers so that each one's CPUs are close together; with `dry_run`, only returns the
  // moves. To be called after reconcile(). The error says why nothing can be moved.
  Result<report::RepackView> repack(bool dry_run);
  bool is_off() const { return options_.cpus.mode == config::CpusConfig::Mode::kOff; }
  std::uint64_t repaired() const { return cpusets_.counters().repaired + memory_.repaired(); }

  const observe::PodTree& tree() const { return pods_.tree(); }
  report::CpusView view() const;

 private:
  int requested_now(const PresentPod& present, const Container& container) const;
  PodLevelMode pod_level_mode() const { return topology_rules(options_.cpus).pod_level_mode(); }
  bool enforces() const { return options_.cpus.mode == config::CpusConfig::Mode::kEnforce; }
  Result<> refresh_machine();
  Result<> refresh_policy();
  void load();
  act::CpuCheckpoint migrate_v1(act::CpuCheckpoint checkpoint) const;
  void warn_unknown_devices(const std::string& uid) const;
  std::vector<RunningCpus> running() const;
  SharedPoolOptions pool_options() const;
  void record_pool(const SharedPool& pool);
  void assign_all(bool first);
  void log_changes(const CpuState& next);
  void update_refusals(const std::vector<PodRefusal>& refused);
  void count_assigned(const std::vector<CpuSet>& containers);
  void count_refused(const CpuRefusal& refusal);
  void save();
  void apply();
  bool release();
  bool is_released() const;
  void forget_removed();
  void release_all();
  CpuSet shared() const;
  std::vector<CpuTarget> targets() const;
  void add_targets(const PresentPod& present, std::vector<CpuTarget>& targets) const;
  std::optional<CpuSet> own_cpus(const PresentPod& present) const;
  CpuPartitions::Wanted desired_partitions() const;
  report::RepackedContainer describe_move(const CpuMove& move) const;
  void read_current_cpus(std::vector<report::RepackedContainer>& containers) const;
  std::optional<CpuSet> cpus_of(const std::string& path) const {
    return observe::cpus_of_cgroup(setup_.cpusets.cgroup_root, path);
  }
  void log_new_error(std::string error);

  Setup setup_;
  CpuManagerOptions options_;
  bool options_changed_ = true;
  std::optional<observe::MachineCpus> machine_;
  std::optional<StaticPolicy> policy_;  // absent: the policy none
  PresentPods pods_;
  MemoryManager memory_;
  act::CpuStateFile file_;
  bool loaded_ = false;
  bool was_static_ =
      false;  // CPU sets of the static policy may have to be removed under the policy none
  CpuState state_;
  std::optional<SharedPool> pool_;
  std::map<std::string, ContainerRefusal, std::less<>> refused_;  // by uid
  act::CpusetUnits units_;
  CpusetUpdater cpusets_;
  CpuPartitions partitions_;
  report::CpusView counts_;  // only its counters are used
  std::string error_;        // the last error; empty: none
};

}  // namespace headroom::daemon
