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
#include <span>
#include <string>
#include <vector>

namespace headroom::daemon {

// MemsUpdater: writes the cgroups' target cpuset.mems, and repairs changes by other programs. The
// kernel moves a container's pages to the new nodes.

class MemsUpdater {
 public:
  struct Setup {
    std::filesystem::path cgroup_root;
    // Gives a cgroup these nodes; an empty set removes its limit. If it was removed, nothing is
    // written.
    std::function<Result<>(const SeenCgroup& cgroup, NodeSet nodes)> write;
    // Called before cgroups are given a limit. Error: none is.
    std::function<Result<>(const std::vector<std::string>& paths)> prepare;
    std::function<void()> pause;  // waits a moment until a write takes effect
  };
  struct Counters {
    std::uint64_t writes = 0;    // of cpuset.mems
    std::uint64_t failed = 0;    // writes that were refused or had no effect
    std::uint64_t repaired = 0;  // values that another program had changed
  };
  struct Target {
    CgroupId cgroup;
    NodeSet nodes;  // empty: no limit of its own
    friend bool operator==(const Target&, const Target&) = default;
  };
  using Wanted = std::map<std::string, Target>;  // by path

  explicit MemsUpdater(Setup setup) : setup_(std::move(setup)) {}

  // The limit of a cgroup that was written before and is not in `wanted` is removed.
  void apply(Wanted wanted);
  // Whether another program changed a cpuset.mems. Reads a file for each cgroup.
  bool drifted() const;
  const Counters& counters() const { return counters_; }

 private:
  void write(const std::string& path, const Target& target);
  bool is_met(NodeSet own, NodeSet wanted) const;
  bool has(const std::string& path, const Target& target) const;

  Setup setup_;
  Wanted applied_;
  Counters counters_;
};

class MemoryManager {
 public:
  MemoryManager(MemsUpdater::Setup setup, std::filesystem::path sys,
                const config::CpusConfig& config, AtStep at_step);

  void reconfigure(const config::CpusConfig& config);
  // Reads the machine's NUMA nodes, if the policy is Static. To be called first in each pass.
  Result<> refresh();
  // If a kubelet keeps the file, it is read in each pass; otherwise only at the start.
  void load(bool enforces);

  // Null: nothing is assigned, because the policy is None or a kubelet keeps the file.
  const MemoryPolicy* assigning_policy() const;
  bool is_static() const { return policy_.has_value(); }
  const MemoryState& state() const { return state_; }
  // The memory of the containers, or the memory they had until the policy became None.
  const PodMemory& entries() const { return policy_ ? state_.entries : released_; }
  const MemoryPools& pools() const { return state_.pod_entries; }

  // Starts from the known assignments; if `first`, unknown ones are taken from the running
  // containers.
  void keep(const PresentPods& pods, std::span<const Pod* const> active, bool first);
  // Adopts the new assignment.
  void set_state(MemoryState next, const PresentPods& pods, std::span<const PodRefusal> refused);
  // To be called before the cgroups are written: what is assigned is in the file first. What the
  // policy None releases stays in the file until apply() has released all of it.
  void save();
  void apply(const PresentPods& pods);
  // The policy is None, and some of what was assigned is not released yet.
  bool is_releasing() const { return was_static_; }

  bool drifted() const { return mems_.drifted(); }
  std::uint64_t repaired() const { return mems_.counters().repaired; }
  // Absent: the policy is None.
  std::optional<report::MemoryView> view(const PresentPods& pods, std::string_view mode) const;

 private:
  std::vector<RunningMemory> running(const PresentPods& pods) const;
  void save_state();
  void end_release();
  void log_changes(const MemoryState& next, const PresentPods& pods);
  void count_refusals(const PresentPods& pods, std::span<const PodRefusal> refused);

  std::filesystem::path cgroup_root_;
  std::filesystem::path sys_;
  AtStep at_step_;
  config::CpusConfig config_;
  MemorySizes sizes_;
  std::optional<MemoryPolicy> policy_;  // absent: the policy None
  act::MemoryStateFile file_;
  std::string load_error_;     // the last error
  bool file_is_read_ = false;  // a kubelet keeps the file
  MemoryState state_;
  PodMemory released_;       // assigned until the policy became None; released by apply()
  bool was_static_ = false;  // the file is of the policy Static, and the policy is None
  std::map<std::string, std::string, std::less<>> refused_;  // the reason, by uid
  MemsUpdater mems_;
  report::MemoryView counts_;  // only its counters are used
};

}  // namespace headroom::daemon
