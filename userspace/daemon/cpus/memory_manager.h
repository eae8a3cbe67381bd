// SPDX-License-Identifier: Apache-2.0
// MemoryManager: the kubelet's memory manager for this host: the machine's NUMA nodes, the state
// file, and cpuset.mems. Which nodes a container gets is decided together with its CPUs
// (CpuManager); used by the same thread.
#pragma once

#include "act/memory/memory_checkpoint.h"
#include "config/config.h"
#include "daemon/cpus/present_pods.h"
#include "judge/cpuset/assign_cpus.h"
#include "judge/memory/memory_policy.h"
#include "report/view/memory_view.h"

#include <headroom/result.h>
#include <headroom/topology.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace headroom::daemon {

// MemsUpdater: brings the cgroups' cpuset.mems to what they should be, and repairs what another
// program changes. The kernel moves a container's pages to nodes that it is given.

class MemsUpdater {
 public:
  struct Setup {
    std::filesystem::path cgroup_root;
    // Gives a cgroup (its path from the root on) these nodes; none: no limit of its own.
    std::function<Result<>(const std::string& path, NodeSet nodes)> write;
    std::function<void(const std::string& path)> remove_drop_in;  // the cgroup is gone
    std::function<void()> pause;  // a moment, for a write to take effect
  };
  struct Counters {
    std::uint64_t writes = 0;    // of cpuset.mems
    std::uint64_t failed = 0;    // writes that were refused or had no effect
    std::uint64_t repaired = 0;  // values that another program had changed
  };
  using Wanted = std::map<std::string, NodeSet>;  // by path; empty: no limit of its own

  explicit MemsUpdater(Setup setup) : setup_(std::move(setup)) {}

  // A cgroup that was given nodes and is no longer wanted loses its limit.
  void apply(Wanted wanted);
  // Removes what is stored for cgroups that are gone, except where `expected` says that the cgroup
  // may come back.
  void forget_removed(const std::function<bool(const std::string& path)>& expected);

  // Whether another program changed one of them. Reads a file for each cgroup.
  bool drifted() const;
  const Counters& counters() const { return counters_; }

 private:
  void write(const std::string& path, NodeSet nodes);
  bool has(const std::string& path, NodeSet nodes) const;

  Setup setup_;
  Wanted applied_;
  std::set<std::string> written_paths_;  // paths ever written to
  Counters counters_;
};

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
