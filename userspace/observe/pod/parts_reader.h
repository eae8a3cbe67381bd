// SPDX-License-Identifier: Apache-2.0
// PartsReader: reads the insides of pods that may be evicted in part, or may be stuck at a limit:
// their containers, the cgroups that die as one, the largest process.
//
// For other pods nothing is read. Records and waits come from the sweep; the rest comes from files:
// memory.oom.group now and then, and cgroup.procs and /proc for pods that are evicted by process,
// so that only configurations that ask for it pay for it.
#pragma once

#include "observe/cgroup/cgroup_inventory.h"
#include "observe/pod/pod_registry.h"

#include <headroom/eviction_unit.h>
#include <headroom/snapshot.h>
#include <headroom/waits.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace headroom::observe {

// What the oom_score_adj of its processes reveals about a pod that is not described yet.

// True if a process directly in the cgroup has the oom_score_adj that the kubelet gives to
// Guaranteed and node-critical pods (-997), or a lower one. Not counted: -998, which runtimes give
// to the pause process of every pod, and a container's monitor (conmon: -1000). `proc`: "/proc".
bool has_protected_process(const KnownCgroup& cgroup, const std::string& proc);

// Which of the pod's containers the cgroup at `path` is; null: none, or not known.
using ContainerAt = std::function<const Container*(const Pod& pod, std::string_view path)>;
using RecordOf = std::function<const hr_record*(CgroupId)>;

class PartsReader {
 public:
  // memory.oom.group is set when a container is made, and seldom after.
  static constexpr Duration kGroupsEvery = std::chrono::seconds(1);
  // While one pass follows another, sizes of processes are not read at each.
  static constexpr Duration kProcessesEvery = std::chrono::milliseconds(20);
  // Processes looked at in one pass; beyond that a pod keeps its last reading.
  static constexpr std::size_t kMaxProcesses = 2048;

  struct PartsOptions {
    EvictionUnit unit = EvictionUnit::kPod;  // of pods that do not say
    bool limits = false;                     // which containers are stuck at their limits
    friend bool operator==(const PartsOptions&, const PartsOptions&) = default;
  };

  explicit PartsReader(ContainerAt container_at = nullptr)
      : container_at_(std::move(container_at)) {}

  // True: it is something else than before; retarget() then.
  bool set_options(const PartsOptions& wanted);
  // The set of cgroups or of pods is another.
  void set_targets(std::span<const PodReading> pods, const CgroupInventory& inventory,
                   PodRegistry& registry);
  // Reads for this sweep; the parts that retarget() gave to the registry are current afterwards.
  void read(Instant at, const RecordOf& record_of, const Waits& waits);

 private:
  struct Member {
    CgroupId id;
    std::size_t parent = 0;     // index; the pod's own is its own parent
    std::size_t container = 0;  // index of the container's cgroup; 0: of none
    int directory = -1;         // the inventory's
    Bytes request{};
    bool oom_group = false;
    bool has_processes = true;          // a cgroup with cgroups below has none, as a rule
    std::optional<Duration> stalled{};  // absent: unknown
  };
  struct Target {
    CgroupId pod;
    EvictionUnit unit = EvictionUnit::kPod;
    std::vector<Member> members;  // the pod's own first, parents before children
    PodParts parts;
    Instant groups_at{}, processes_at{};
  };

  void add_members(const PodReading& pod, const CgroupInventory& inventory, Target& target);
  void sum_stalls(const Waits& waits);
  void read_groups(Target& target, Instant at);
  void read_processes(Target& target, Instant at);
  void fill(Target& target, const RecordOf& record_of);
  static CgroupId group_of(const Target& target, std::size_t member);

  ContainerAt container_at_;
  PartsOptions options_;
  std::vector<std::unique_ptr<Target>> targets_;  // their parts stay where they are
  std::unordered_map<std::uint64_t, Member*> members_;
  std::unordered_map<std::uint64_t, std::vector<const KnownCgroup*>> children_;  // of retarget()
  std::vector<char> procs_;
  std::size_t processes_read_ = 0;
  long page_size_ = 4096;
};

}  // namespace headroom::observe
