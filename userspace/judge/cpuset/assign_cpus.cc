// SPDX-License-Identifier: Apache-2.0
#include "judge/cpuset/assign_cpus.h"

#include "judge/cpuset/cpu_admission.h"
#include "judge/cpuset/current_cpus.h"
#include "judge/cpuset/hints/cpu_hints.h"
#include "judge/cpuset/policy/cpu_state.h"
#include "judge/cpuset/policy/policy_options.h"
#include "judge/cpuset/policy/static_policy.h"

#include <headroom/pod.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace headroom {
namespace {

int groups_with(const Topology& topology, Level level, const CpuSet& cpus) {
  CpuSet groups;  // indices: a bitset is one, whatever it counts
  for (const Cpu cpu : cpus)
    groups.insert(static_cast<Cpu>(topology.group_of(level, cpu)));
  return groups.size();
}

}  // namespace

CpuSpread cpu_spread(const Topology& topology, const CpuSet& cpus) {
  const CpuSet known = cpus & topology.cpus();
  return {.numa_nodes = groups_with(topology, Level::kNuma, known),
          .sockets = groups_with(topology, Level::kSocket, known),
          .caches = groups_with(topology, Level::kUncore, known),
          .cores = groups_with(topology, Level::kCore, known)};
}

int count_whole_cores(const Topology& topology, const CpuSet& free) {
  return static_cast<int>(
      std::ranges::count_if(topology.groups(Level::kCore),
                            [&](const CpuGroup& core) { return core.cpus.subset_of(free); }));
}

int max_on_one_node(const Topology& topology, const CpuSet& free) {
  int most = 0;
  for (const CpuGroup& node : topology.groups(Level::kNuma))
    most = std::max(most, node.cpus.overlap(free));
  return most;
}

namespace {

struct Found {
  const Container* container = nullptr;
  bool finishes = false;  // an ordinary init container: others of the pod take its CPUs over
};

Found find(const Pod& pod, std::string_view name) {
  for (const Container& container : pod.init_containers)
    if (container.name == name) return {&container, !container.sidecar};
  for (const Container& container : pod.containers)
    if (container.name == name) return {&container, false};
  return {};
}

class CpuAssigner {
 public:
  CpuAssigner(const ResourceManagers& managers, MemoryState memory,
              std::span<const Pod* const> active)
      : managers_(managers),
        policy_(*managers.cpus),
        usable_(policy_.topology().cpus() - policy_.reserved()),
        memory_(std::move(memory)) {
    for (const Pod* const pod : active)
      pods_.emplace(pod->uid, pod);
  }

  void keep_running(std::span<const RunningCpus> running) {
    for (const auto& [uid, pod] : pods_)
      if (has_pod_pool(*pod, mode())) keep_running_pool(*pod, running);
    for (const RunningCpus& one : running)
      if (is_unshared(one, running)) try_assign(one.pod, one.container, one.cpus);
  }

  // If no state is known, a container that runs on exactly as many CPUs as it requests stays there,
  // even if others run there too. A pod that started while no CPUs were assigned runs everywhere.
  void keep_remaining_running(std::span<const RunningCpus> running) {
    for (const RunningCpus& one : running)
      if (!leftover_.contains(one.pod)) try_assign(one.pod, one.container, one.cpus);
    update_default_set();
  }

  void keep_known(const CpuState& known) {
    for (const auto& [uid, containers] : known.entries)
      for (const auto& [container, cpus] : containers)
        if (!try_assign(uid, container, cpus)) leftover_[uid][container] = cpus;
    for (const auto& [uid, pool] : known.pod_entries)
      if (const auto parts = known.entries.find(uid); parts != known.entries.end())
        if (!try_pool(uid, pool, parts->second)) leftover_pools_.emplace(uid, pool);
    update_default_set();
  }

  // A container that is still to be served counts in the pool once it was refused, not before:
  // containers are served in the order they came.
  ResourceAssignment assign(std::span<const Pod* const> active, const SharedPoolOptions& options) {
    ResourceAssignment done;
    MilliCpu requested = options.requested;
    for (const Pod* const pod : active)
      if (is_served(*pod)) requested.count += shared_pool_request(*pod, state_).count;
    for (const Pod* const pod : active) {
      if (is_served(*pod)) continue;
      if (const auto why =
              admit_pod(*pod, options.guarded ? std::optional(requested) : std::nullopt)) {
        done.refused.push_back({pod, *why});
        keep_leftover(*pod);
      }
      requested.count += shared_pool_request(*pod, state_).count;
    }
    done.pool = {pool_size(policy_, state_), requested};
    done.state = {std::move(state_), std::move(memory_)};
    return done;
  }

 private:
  // No container runs there, except those of the same pod.
  static bool is_unshared(const RunningCpus& one, std::span<const RunningCpus> running) {
    return std::ranges::none_of(running, [&](const RunningCpus& other) {
      return other.pod != one.pod && other.cpus.intersects(one.cpus);
    });
  }

  PodLevelMode mode() const { return policy_.pod_level_mode(); }

  // No other pod has any of these CPUs.
  bool is_free_of_others(const CpuSet& cpus, const std::string& pod) const {
    const auto others = [&](const auto& pool) {
      return pool.first != pod && pool.second.intersects(cpus);
    };
    if (std::ranges::any_of(state_.pod_entries, others)) return false;
    return std::ranges::none_of(state_.entries, [&](const auto& containers) {
      return containers.first != pod &&
             std::ranges::any_of(containers.second, [&](const auto& container) {
               return container.second.intersects(cpus);
             });
    });
  }

  // CPUs that no other pod has, and of this pod only those of containers that are done with them.
  bool is_free(const CpuSet& cpus, const Pod& pod, bool finishes) const {
    if (!is_free_of_others(cpus, pod.uid)) return false;
    for (const auto& [uid, containers] : state_.entries)
      for (const auto& [name, taken] : containers) {
        const bool shared_in_turn = uid == pod.uid && (finishes || find(pod, name).finishes);
        if (!shared_in_turn && taken.intersects(cpus)) return false;
      }
    return true;
  }

  // The pod's pool with the parts of its containers, of whatever size: a resize does not change it.
  // True also if nothing is left to do.
  bool try_pool(const std::string& uid, const CpuSet& pool, const ContainerCpus& parts) {
    const auto pod = pods_.find(uid);
    if (pod == pods_.end() || state_.pod_entries.contains(uid)) return true;
    if (!has_pod_pool(*pod->second, mode()) || exclusive_cpus_requested(*pod->second, mode()) == 0)
      return true;
    if (pool.empty() || !pool.subset_of(usable_) || !is_free_of_others(pool, uid)) return false;
    for (const auto& [name, cpus] : parts)
      if (has_container(*pod->second, name) && !cpus.empty() && cpus.subset_of(pool))
        state_.entries[uid][name] = cpus;
    state_.pod_entries.emplace(uid, pool);
    return true;
  }

  // The pool is what the pod's cgroup may use or, under a kubelet, which sets nothing there, what
  // its containers use together.
  void keep_running_pool(const Pod& pod, std::span<const RunningCpus> running) {
    ContainerCpus parts;
    CpuSet together;
    CpuSet pool;
    for (const RunningCpus& one : running) {
      if (one.pod != pod.uid) continue;
      if (one.container.empty()) pool = one.cpus;
      if (one.container.empty()) continue;
      parts[one.container] = one.cpus;
      together |= one.cpus;
    }
    const int wanted = exclusive_cpus_requested(pod, mode());
    if (pool.size() != wanted) pool = together;
    if (pool.size() == wanted && is_unshared({pod.uid, "", pool}, running))
      try_pool(pod.uid, pool, parts);
  }

  // True also if nothing is left to do: the container is gone, or has its CPUs already.
  bool try_assign(const std::string& uid, const std::string& name, const CpuSet& cpus) {
    const auto pod = pods_.find(uid);
    if (pod == pods_.end()) return true;
    const Found found = find(*pod->second, name);
    if (!found.container || exclusive_cpus(state_, uid, name)) return true;
    if (has_pod_pool(*pod->second, mode())) return true;
    const int wanted = exclusive_cpus_requested(*pod->second, *found.container, mode());
    if (wanted == 0) return true;
    if (cpus.size() != wanted || !cpus.subset_of(usable_)) return false;
    if (!is_free(cpus, *pod->second, found.finishes)) return false;
    state_.entries[uid][name] = cpus;
    return true;
  }

  // Admitted once, it is not asked again: the node around it may be another by now.
  bool is_served(const Pod& pod) const {
    const bool pool = has_pod_pool(pod, mode()) && exclusive_cpus_requested(pod, mode()) > 0;
    const auto served = [&](const Container& container) {
      return (!pool && exclusive_cpus_requested(pod, container, mode()) == 0) ||
             exclusive_cpus(state_, pod.uid, container.name);
    };
    return std::ranges::all_of(pod.init_containers, served) &&
           std::ranges::all_of(pod.containers, served) &&
           (!managers_.memory || managers_.memory->is_served(memory_, pod));
  }

  // `requested`: of the pool, by all others in it; absent: it is not guarded.
  std::optional<ContainerRefusal> admit_pod(const Pod& pod, std::optional<MilliCpu> requested) {
    const ContainerCpus had = leftover_of(pod);
    CpuSet together;
    for (const auto& [name, cpus] : had)
      together |= cpus;
    auto admitted = admit(managers_, {state_, memory_}, pod);
    if (!admitted) return admitted.error();
    if (requested)
      if (auto why = find_pool_refusal(policy_, state_, admitted->cpus, pod, *requested, together))
        return why;
    memory_ = std::move(admitted->memory);
    const bool same_nodes = !requested_devices(pod).empty() || memory_.entries.contains(pod.uid);
    state_ = keep_current_cpus(policy_, state_, std::move(admitted->cpus), pod, had, same_nodes);
    return std::nullopt;
  }

  // What containers that are to have another number still have of their CPUs; each CPU is one's.
  ContainerCpus leftover_of(const Pod& pod) const {
    ContainerCpus rest;
    const auto all = leftover_.find(pod.uid);
    if (all == leftover_.end()) return rest;
    CpuSet free = usable_ & state_.default_set;
    for (const auto& [name, cpus] : all->second) {
      const CpuSet left = cpus & free;
      if (left.empty() || exclusive_cpus(state_, pod.uid, name)) continue;
      rest[name] = left;
      free -= left;
    }
    return rest;
  }

  // A pod that lost some of its CPUs and can have no others keeps those that are left.
  void keep_leftover(const Pod& pod) {
    if (const auto pool = leftover_pools_.find(pod.uid); pool != leftover_pools_.end())
      return keep_leftover_pool(pod, pool->second & usable_ & state_.default_set);
    for (const auto& [name, cpus] : leftover_of(pod)) {
      state_.entries[pod.uid][name] = cpus;
      state_.default_set -= cpus;
    }
  }

  // All its containers share what is left.
  void keep_leftover_pool(const Pod& pod, const CpuSet& left) {
    if (left.empty()) return;
    for (const auto* const list : {&pod.init_containers, &pod.containers})
      for (const Container& container : *list)
        state_.entries[pod.uid][container.name] = left;
    state_.pod_entries[pod.uid] = left;
    state_.default_set -= left;
  }

  void update_default_set() {
    state_.default_set = policy_.initial().default_set - assigned_cpus(state_);
  }

  const ResourceManagers& managers_;
  const StaticPolicy& policy_;
  const CpuSet usable_;
  std::map<std::string, const Pod*, std::less<>> pods_;
  CpuState state_;
  MemoryState memory_;
  PodCpus leftover_;
  std::map<std::string, CpuSet, std::less<>> leftover_pools_;  // by uid
};

// Without a CPU manager.
ResourceAssignment assign_memory(const ResourceManagers& managers, ResourceState state,
                                 std::span<const Pod* const> active) {
  ResourceAssignment done;
  for (const Pod* const pod : active) {
    if (!managers.memory || managers.memory->is_served(state.memory, *pod)) continue;
    auto next = admit(managers, state, *pod);
    if (next)
      state = *std::move(next);
    else
      done.refused.push_back({pod, next.error()});
  }
  done.state = std::move(state);
  return done;
}

}  // namespace

ResourceAssignment assign_resources(const ResourceManagers& managers, const ResourceState& known,
                                    std::span<const Pod* const> active,
                                    std::span<const RunningCpus> running,
                                    const SharedPoolOptions& pool) {
  if (!managers.cpus) return assign_memory(managers, known, active);
  CpuAssigner assigner(managers, known.memory, active);
  assigner.keep_running(running);
  assigner.keep_known(known.cpus);
  assigner.keep_remaining_running(running);
  ResourceAssignment done = assigner.assign(active, pool);
  done.state.cpus.admitted = changed_counts(known.cpus, done.state.cpus);
  return done;
}

CpuAssignment assign_cpus(const StaticPolicy& policy, const CpuState& known,
                          std::span<const Pod* const> active, std::span<const RunningCpus> running,
                          const SharedPoolOptions& pool) {
  const ResourceManagers managers{.cpus = &policy,
                                  .memory = nullptr,
                                  .rules = policy.config().topology_rules,
                                  .numa = &policy.topology().numa()};
  auto done = assign_resources(managers, {.cpus = known, .memory = {}}, active, running, pool);
  return {std::move(done.state.cpus), std::move(done.refused), done.pool};
}

MemoryState keep_memory(const MemoryPolicy& policy, const MemoryState& known,
                        std::span<const Pod* const> active,
                        std::span<const RunningMemory> running) {
  MemoryState state = policy.restore(known, active);
  for (const RunningMemory& one : running) {
    const auto pod = std::ranges::find(active, one.pod, &Pod::uid);
    if (pod == active.end() || memory_blocks(state, one.pod, one.container)) continue;
    const Found found = find(**pod, one.container);
    if (!found.container || has_pod_pool(**pod, policy.pod_level_mode())) continue;
    auto next = policy.allocate(state, **pod, *found.container, {one.nodes, /*preferred=*/false});
    if (next && memory_nodes(*next, one.pod, one.container) == one.nodes) state = *std::move(next);
  }
  return state;
}

CpuSet shared_pool(const StaticPolicy& policy, const CpuState& state) {
  const CpuSet here = state.default_set & policy.topology().cpus();
  return here.empty() ? policy.reserved() : here;
}

}  // namespace headroom
