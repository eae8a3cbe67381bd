// SPDX-License-Identifier: Apache-2.0
#include "judge/cpuset/assign_cpus.h"

#include "judge/cpuset/allocation/take_cpus.h"
#include "judge/cpuset/cpu_admission.h"
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

// In place: a container that is to have another number of CPUs than it has, by a resize or because
// one was unplugged, keeps of them what it may: its tasks, and what they have in caches, are there.

CpuSet of_pod(const CpuState& state, const Pod& pod) {
  CpuSet all;
  if (const auto containers = state.entries.find(pod.uid); containers != state.entries.end())
    for (const auto& [name, cpus] : containers->second)
      all |= cpus;
  return all;
}

// Ordinary init containers lend their CPUs to those after them: such pods are left as they are.
bool shares_init_cpus(const CpuState& state, const Pod& pod) {
  return std::ranges::any_of(pod.init_containers, [&](const Container& container) {
    return !container.sidecar && exclusive_cpus(state, pod.uid, container.name);
  });
}

class CpuWorker {
 public:
  explicit CpuWorker(const StaticPolicy& policy)
      : topology_(policy.topology()),
        options_(policy.config().options),
        rules_(take_rules(options_, topology_)) {}

  // Fewer: of those it has. More: the nearest besides.
  std::optional<CpuSet> resized(const CpuSet& has, const CpuSet& free, int wanted) const {
    if (wanted <= has.size()) return some_of(has, wanted);
    CpuSet all = has;
    for (const Level level : {Level::kCore, Level::kUncore, Level::kNuma, Level::kSocket}) {
      const CpuSet near = (topology_.widened(has, level) & free) - all;
      const auto more = some_of(near, std::min(near.size(), wanted - all.size()));
      if (!more) return std::nullopt;
      all |= *more;
    }
    const auto rest = some_of(free - all, wanted - all.size());
    return rest ? std::optional(all | *rest) : std::nullopt;
  }

  bool is_as_near(const CpuSet& resized, const CpuSet& assigned, bool same_nodes) const {
    const CpuSpread one = cpu_spread(topology_, resized), other = cpu_spread(topology_, assigned);
    if (one.numa_nodes > other.numa_nodes || one.sockets > other.sockets) return false;
    if (options_.full_pcpus_only && one.cores > other.cores) return false;
    return !same_nodes || topology_.nodes_of(assigned).contains(topology_.nodes_of(resized));
  }

 private:
  std::optional<CpuSet> some_of(const CpuSet& from, int count) const {
    const TakeResult taken = take(topology_, from, count, rules_);
    return taken ? std::optional(*taken) : std::nullopt;
  }

  const Topology& topology_;
  const CpuPolicyOptions& options_;
  TakeRules rules_;
};

// `fresh` is what the policy made of `before`, in which the pod had none: as if it were new. The
// same with its containers on CPUs they `had`, which are free in `before`, as far as these are as
// many and lie as near together: on no more NUMA nodes, sockets and, under full-pcpus-only, cores,
// and on none that the policy did not choose, where the pod names a device.
CpuState update_cpu_worker(const StaticPolicy& policy, const CpuState& before, CpuState assigned,
                           const Pod& pod, const ContainerCpus& previous, bool same_nodes) {
  // Evenly over NUMA nodes is only what the policy made.
  if (previous.empty() || policy.config().options.distribute_across_numa ||
      shares_init_cpus(assigned, pod))
    return assigned;
  const CpuWorker current_cpu_keeper(policy);
  CpuState next = assigned;
  for (const auto& [name, has] : previous) {
    const CpuSet* const given = exclusive_cpus(next, pod.uid, name);
    if (!given) continue;
    const CpuSet old = *given;
    CpuSet others = policy.reserved();
    for (const auto& [other, cpus] : previous)
      if (other != name) others |= cpus;
    const CpuSet free =
        ((next.default_set | old) & before.default_set & policy.topology().cpus()) - others;
    const auto resized = current_cpu_keeper.resized(has, free, old.size());
    if (!resized || !current_cpu_keeper.is_as_near(*resized, old, same_nodes)) continue;
    // Its CPUs may now belong to another container of the pod.
    if (!resized->subset_of(next.default_set | old)) continue;
    next.default_set = (next.default_set | old) - *resized;
    next.entries[pod.uid][name] = *resized;
  }
  // In the scope of the pod its containers lie near together.
  const bool whole = policy.config().topology_rules.scope == TopologyScope::kPod;
  if (whole && !current_cpu_keeper.is_as_near(of_pod(next, pod), of_pod(assigned, pod), same_nodes))
    return assigned;
  return next;
}

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
    for (const auto& [uid, cpus] : known.pod_entries)
      if (pods_.contains(uid)) state_.pod_entries.emplace(uid, cpus & usable_);
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

  // CPUs that no other pod has, and of this pod only those of containers that are done with them.
  bool is_free(const CpuSet& cpus, const Pod& pod, bool finishes) const {
    for (const auto& [uid, containers] : state_.entries)
      for (const auto& [name, taken] : containers) {
        const bool shared_in_turn = uid == pod.uid && (finishes || find(pod, name).finishes);
        if (!shared_in_turn && taken.intersects(cpus)) return false;
      }
    return true;
  }

  // True also if nothing is left to do: the container is gone, or has its CPUs already.
  bool try_assign(const std::string& uid, const std::string& name, const CpuSet& cpus) {
    const auto pod = pods_.find(uid);
    if (pod == pods_.end()) return true;
    const Found found = find(*pod->second, name);
    if (!found.container || exclusive_cpus(state_, uid, name)) return true;
    const int wanted = exclusive_cpus_requested(*pod->second, *found.container);
    if (wanted == 0) return true;
    if (cpus.size() != wanted || !cpus.subset_of(usable_)) return false;
    if (!is_free(cpus, *pod->second, found.finishes)) return false;
    state_.entries[uid][name] = cpus;
    return true;
  }

  // Admitted once, it is not asked again: the node around it may be another by now.
  bool is_served(const Pod& pod) const {
    const auto served = [&](const Container& container) {
      return exclusive_cpus_requested(pod, container) == 0 ||
             exclusive_cpus(state_, pod.uid, container.name);
    };
    return std::ranges::all_of(pod.init_containers, served) &&
           std::ranges::all_of(pod.containers, served) &&
           (!managers_.memory || MemoryPolicy::is_served(memory_, pod));
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
    state_ = update_cpu_worker(policy_, state_, std::move(admitted->cpus), pod, had, same_nodes);
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
    for (const auto& [name, cpus] : leftover_of(pod)) {
      state_.entries[pod.uid][name] = cpus;
      state_.default_set -= cpus;
    }
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
};

// Without a CPU manager.
ResourceAssignment assign_memory(const ResourceManagers& managers, ResourceState state,
                                 std::span<const Pod* const> active) {
  ResourceAssignment done;
  for (const Pod* const pod : active) {
    if (!managers.memory || MemoryPolicy::is_served(state.memory, *pod)) continue;
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

MemoryState keep_memory(const MemoryPolicy& policy, const PodMemory& known,
                        std::span<const Pod* const> active,
                        std::span<const RunningMemory> running) {
  MemoryState state = policy.restore(known, active);
  for (const RunningMemory& one : running) {
    const auto pod = std::ranges::find(active, one.pod, &Pod::uid);
    if (pod == active.end() || memory_blocks(state, one.pod, one.container)) continue;
    const Found found = find(**pod, one.container);
    if (!found.container) continue;
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
