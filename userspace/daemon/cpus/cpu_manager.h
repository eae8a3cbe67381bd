// SPDX-License-Identifier: Apache-2.0
// CpuManager: the kubelet's static CPU manager for this host: the active pods, the assignment of
// CPUs, the state file, and the cgroups. Used by one thread; it may block (CpuWorker).
//
// Each reconcile() starts from the actual state. The state file is written before the cgroups, so
// that a crash in between leaves a file that is ahead of them, not behind; at the start a running
// container's CPUs win over the file.
#pragma once

#include "act/cpus/cpu_partition.h"
#include "act/cpus/cpu_state_file.h"
#include "config/config.h"
#include "daemon/sources/pod_containers.h"
#include "judge/cpuset/assign_cpus.h"
#include "judge/cpuset/cpuset_write_order.h"
#include "judge/cpuset/pool_guard.h"
#include "observe/node/cpu_topology.h"
#include "observe/pod/pod_cgroup_tree.h"
#include "report/view/cpus_view.h"

#include <headroom/pod.h>
#include <headroom/units.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace headroom::daemon {

struct CpuManagerOptions {
  config::CpusConfig cpus;
  MilliCpu reserved{};  // systemReserved and kubeReserved together
};

// Errors in the configuration that only this machine reveals.
PolicyErrors machine_config_errors(const CpuManagerOptions& options, const Topology& topology);

class CpuManager {
 public:
  struct Setup {
    std::filesystem::path cgroup_root;
    std::string pods_cgroup;
    std::filesystem::path sys = "/sys";
    // Gives a cgroup (its path from the root on) these CPUs; none: no limit of its own.
    std::function<Result<>(const std::string& path, const CpuSet& cpus)> write;
    std::function<void(const std::string& path)> remove_drop_in;  // the cgroup is gone
    std::function<void()> pause;  // a moment, for a write to take effect
    IdentifyContainer identify;
    AtStep at_step = nullptr;
  };
  CpuManager(Setup setup, CpuManagerOptions options);

  void reconfigure(CpuManagerOptions options);
  void set_declared_pods(std::vector<Pod> manifests);
  void reconcile();
  // Whether another program changed a cpuset, or CPUs came or went. Reads a file for each cgroup.
  bool drifted() const;
  // Rearranges CPUs so that each container's are close together, or says what that would move;
  // after a reconcile(). The error says why nothing can be moved.
  Result<report::RepackView> repack(bool dry_run);
  bool is_off() const { return options_.cpus.mode == config::CpusConfig::Mode::kOff; }
  std::uint64_t repaired() const { return counts_.repaired; }

  const observe::PodTree& tree() const { return tree_; }
  report::CpusView view() const;

 private:
  struct PresentPod {
    const observe::PodCgroup* cgroup;
    std::shared_ptr<const Pod> pod;
    std::multimap<std::string, std::string> containers;
  };

  bool enforces() const { return options_.cpus.mode == config::CpusConfig::Mode::kEnforce; }
  Result<> refresh_machine();
  Result<> refresh_policy();
  void load();
  act::CpuCheckpoint migrate_v1(act::CpuCheckpoint checkpoint) const;
  void update_present_pods();
  void warn_unknown_devices(const std::string& uid) const;
  std::shared_ptr<const Pod> pod_of(const observe::PodCgroup& cgroup) const;
  std::vector<RunningCpus> running() const;
  void record_shared_cpus();
  void record_pool(const SharedPool& pool);
  void assign_all(bool first);
  void log_changes(const CpuState& next);
  void update_refusals(const std::vector<PodRefusal>& refused);
  void save();
  CpuSet shared() const;
  std::vector<CpuTarget> targets() const;
  void add_targets(const PresentPod& present, std::vector<CpuTarget>& targets) const;
  void apply();
  void read_current_cpus(std::vector<CpuTarget>& targets) const;
  report::RepackedContainer describe_move(const CpuMove& move) const;
  void read_current_cpus(std::vector<report::RepackedContainer>& containers) const;
  void count_drift(const std::vector<CpuTarget>& targets);
  void write_cpusets(const std::vector<CpuWrite>& writes, std::vector<CpuTarget>& targets);
  void wait_for_writes(const std::vector<CpuWrite>& writes, std::vector<CpuTarget>& targets);
  void forget_removed();
  using Partitions = std::map<std::string, CpuSet>;  // by the pod's path
  std::optional<CpuSet> own_cpus(const PresentPod& present) const;
  Partitions desired_partitions() const;
  void end_partitions(const Partitions& wanted);
  void delegate_exclusive(const Partitions& wanted);
  void start_partitions(const Partitions& wanted);
  void isolate(const std::string& path, const CpuSet& cpus);
  bool partition_lost() const;
  std::string partition_of(const std::string& path) const;
  std::optional<CpuSet> cpus_of(const std::string& path) const {
    return observe::cpus_of_cgroup(setup_.cgroup_root, path);
  }
  void log_new_error(std::string error);

  Setup setup_;
  CpuManagerOptions options_;
  bool options_changed_ = true;
  std::optional<observe::MachineCpus> machine_;
  std::optional<StaticPolicy> policy_;  // absent: the policy none
  act::CpuStateFile file_;
  bool loaded_ = false;
  bool was_static_ = false;  // there may be CPU sets to be taken back under the policy none
  std::map<std::string, std::shared_ptr<const Pod>, std::less<>> manifests_;  // by uid
  std::map<std::string, std::uint64_t, std::less<>> arrivals_;                // by uid
  std::uint64_t next_arrival_ = 0;
  observe::PodTree tree_;
  std::vector<PresentPod> present_;  // in the order they came
  SharedPoolOptions pool_options_;   // what pods of the tiers request
  int unknown_pool_pods_ = 0;        // pods in the shared pool without a manifest
  std::optional<SharedPool> pool_;
  CpuState state_;
  std::map<std::string, ContainerRefusal, std::less<>> refused_;  // by uid
  std::map<std::string, CpuSet> applied_;                         // by path
  std::set<std::string> written_paths_;                           // paths ever written to
  act::CpuPartition partition_;
  bool may_have_partitions_ = true;  // of an earlier daemon
  Partitions isolated_;
  struct IsolationFailure {
    CpuSet cpus;
    std::string why;
  };
  std::map<std::string, IsolationFailure> isolation_failures_;  // by path
  report::CpusView counts_;                                     // the counters of it
  std::string last_error_;
};

}  // namespace headroom::daemon
