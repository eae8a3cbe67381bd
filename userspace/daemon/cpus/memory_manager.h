// SPDX-License-Identifier: Apache-2.0
// MemoryManager: the kubelet's memory manager for this host: the machine's NUMA nodes, the state
// file, and cpuset.mems. Which nodes a container gets is decided together with its CPUs
// (CpuManager); used by the same thread.
#pragma once

#include "act/memory/memory_state_file.h"
#include "config/config.h"
#include "daemon/cpus/mems_updater.h"
#include "daemon/cpus/present_pods.h"
#include "judge/cpuset/assign_cpus.h"
#include "judge/memory/memory_policy.h"
#include "report/view/memory_view.h"

#include <headroom/result.h>

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace headroom::daemon {

class MemoryManager {
 public:
  MemoryManager(MemsUpdater::Setup setup, std::filesystem::path sys,
                const config::CpusConfig& config, AtStep at_step);

  void reconfigure(const config::CpusConfig& config);
  // Reads what the machine has, if the policy is Static. First of all in a turn.
  Result<> refresh();
  // Where another program, a kubelet, keeps the file, it is read in each turn; else at the start.
  void load(bool enforces);

  // Null: nothing is assigned: by the policy None, or because the file is another program's.
  const MemoryPolicy* assigning_policy() const;
  bool is_static() const { return policy_.has_value(); }
  const MemoryState& state() const { return state_; }
  // What containers have, or had until the policy became None.
  const PodMemory& entries() const { return policy_ ? state_.entries : released_; }

  // Goes on from what the pods are known to have or, `first` and where that is not known, run on.
  void keep(const PresentPods& pods, std::span<const Pod* const> active, bool first);
  // What was decided.
  void set_state(MemoryState next, const PresentPods& pods, std::span<const PodRefusal> refused);
  // The file before the cgroups.
  void save();
  void apply(const PresentPods& pods);
  void forget_removed(const std::function<bool(const std::string& path)>& expected) {
    mems_.forget_removed(expected);
  }

  bool drifted() const { return mems_.drifted(); }
  std::uint64_t repaired() const { return mems_.counters().repaired; }
  // Absent: the policy is None.
  std::optional<report::MemoryView> view(const PresentPods& pods, std::string_view mode) const;

 private:
  std::vector<RunningMemory> running(const PresentPods& pods) const;
  void log_changes(const MemoryState& next, const PresentPods& pods);
  void count_refusals(const PresentPods& pods, std::span<const PodRefusal> refused);

  std::filesystem::path cgroup_root_;
  std::filesystem::path sys_;
  AtStep at_step_;
  config::CpusConfig config_;
  MemorySizes sizes_;
  std::optional<MemoryPolicy> policy_;  // absent: the policy None
  act::MemoryStateFile file_;
  std::string load_error_;     // the last one
  bool file_is_read_ = false;  // of another program
  MemoryState state_;
  PodMemory released_;  // of the file of an earlier daemon, under the policy None
  std::map<std::string, std::string, std::less<>> refused_;  // why, by uid
  MemsUpdater mems_;
  report::MemoryView counts_;  // the counters of it
};

}  // namespace headroom::daemon
