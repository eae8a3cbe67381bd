// SPDX-License-Identifier: Apache-2.0
#include "judge/cpuset/repack.h"

#include "judge/cpuset/cpu_admission.h"
#include "judge/cpuset/hints/cpu_hints.h"
#include "judge/cpuset/policy/static_policy.h"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

namespace headroom {
namespace {

using Pods = std::vector<const Pod*>;

template <class Visit>
void for_each_cpu_request(const Pod& pod, PodLevelMode mode, Visit&& visit) {
  for (const auto* const list : {&pod.init_containers, &pod.containers})
    for (const Container& container : *list)
      if (const int wanted = exclusive_cpus_requested(pod, container, mode); wanted > 0)
        visit(container.name, wanted);
}

int unsatisfied_containers(const CpuState& state, const Pod& pod, PodLevelMode mode) {
  int count = 0;
  for_each_cpu_request(pod, mode, [&](const std::string& name, int wanted) {
    const CpuSet* const cpus = exclusive_cpus(state, pod.uid, name);
    count += cpus && cpus->size() == wanted ? 0 : 1;
  });
  return count;
}

CpuState without(CpuState state, const std::string& uid) {
  while (state.entries.contains(uid)) {
    const std::string container = state.entries.find(uid)->second.begin()->first;
    state = release_cpus(std::move(state), uid, container);
  }
  return state;
}

bool overlaps(const ContainerCpus& some, const ContainerCpus& others) {
  return std::ranges::any_of(some, [&](const auto& one) {
    return std::ranges::any_of(
        others, [&](const auto& other) { return one.second.intersects(other.second); });
  });
}

std::vector<CpuMove> moves_between(const CpuState& from, const CpuState& to) {
  std::vector<CpuMove> moves;
  for (const auto& [uid, containers] : to.entries)
    for (const auto& [name, cpus] : containers) {
      const CpuSet* const had = exclusive_cpus(from, uid, name);
      if (!had || *had != cpus) moves.push_back({uid, name, had ? *had : CpuSet(), cpus});
    }
  return moves;
}

int cpus_of(std::span<const CpuMove> moves) {
  int moved = 0;
  for (const CpuMove& move : moves)
    moved += (move.to - move.from).size();
  return moved;
}

class Search {
 public:
  Search(const StaticPolicy& policy, const CpuState& origin, std::span<const Pod* const> pods,
         const SharedPoolOptions& options)
      : policy_(policy), origin_(origin), options_(options) {
    for (const Pod* const pod : pods)
      if (exclusive_cpus_requested(*pod, mode()) > 0 && !has_pod_pool(*pod, mode()))
        pods_.push_back(pod);
      else
        options_.requested.count += shared_pool_request(*pod, origin).count;
  }

  PackingScore packing_quality(const CpuState& state) const {
    const Topology& topology = policy_.topology();
    PackingScore packing_quality;
    for (const Pod* const pod : pods_) {
      packing_quality.unsatisfied_containers += unsatisfied_containers(state, *pod, mode());
      for_each_cpu_request(*pod, mode(), [&](const std::string& name, int) {
        const CpuSet* const cpus = exclusive_cpus(state, pod->uid, name);
        if (!cpus) return;
        packing_quality.far_from_devices += is_far(*cpus, *pod) ? 1 : 0;
        const CpuSpread span = cpu_spread(topology, *cpus);
        packing_quality.span.numa_nodes += span.numa_nodes;
        packing_quality.span.sockets += span.sockets;
        packing_quality.span.caches += span.caches;
        packing_quality.span.cores += span.cores;
      });
    }
    const CpuSet free = (state.default_set & topology.cpus()) - policy_.reserved();
    packing_quality.free_cores = count_whole_cores(topology, free);
    packing_quality.free_on_one_node = max_on_one_node(topology, free);
    return packing_quality;
  }

  CpuState best() const {
    CpuState best = hill_climb(origin_);
    for (const Pods& order : {by_size(pods_), pods_})
      if (const auto assigned_again = repack_all(order);
          assigned_again && pool_is_sufficient(*assigned_again))
        best = better(hill_climb(*assigned_again), std::move(best));
    return gain(best) < gain(origin_) ? best : origin_;
  }

 private:
  // Number by number, less is better.
  using Gain = std::array<int, 8>;
  using Score = std::pair<Gain, int>;  // and CPUs moved

  Gain gain(const CpuState& state) const {
    const PackingScore packed = packing_quality(state);
    const bool spread = policy_.config().options.distribute_across_cores;
    return {packed.unsatisfied_containers,
            packed.far_from_devices,
            packed.span.numa_nodes,
            packed.span.sockets,
            packed.span.caches,
            spread ? 0 : packed.span.cores,
            -packed.free_cores,
            -packed.free_on_one_node};
  }
  Score score(const CpuState& state) const {
    return {gain(state), cpus_of(moves_between(origin_, state))};
  }
  CpuState better(CpuState one, CpuState other) const {
    return score(one) < score(other) ? one : other;
  }

  bool is_far(const CpuSet& cpus, const Pod& pod) const {
    const Topology& topology = policy_.topology();
    for (const auto& [device, list] :
         device_hints(policy_.config().devices, topology.numa(), pod)) {
      NodeSet near;
      for (const NumaHint& hint : *list)
        if (hint.preferred) near = near | *hint.nodes;
      if (!near.contains(topology.nodes_of(cpus & topology.cpus()))) return true;
    }
    return false;
  }

  PodLevelMode mode() const { return policy_.pod_level_mode(); }

  Pods by_size(Pods pods) const {
    std::ranges::stable_sort(pods, std::greater{}, [this](const Pod* pod) {
      return exclusive_cpus_requested(*pod, mode());
    });
    return pods;
  }

  // A container that had CPUs may not be left with fewer.
  std::optional<CpuState> admitted(CpuState state, const Pods& order) const {
    for (const Pod* const pod : order) {
      auto next = admit(policy_, state, *pod);
      if (!next && origin_.entries.contains(pod->uid)) return std::nullopt;
      if (next) state = *std::move(next);
    }
    return state;
  }

  // The pool is no smaller than it was, or has all the same what its pods requested.
  bool pool_is_sufficient(const CpuState& state) const {
    if (!options_.guarded) return true;
    const MilliCpu size = pool_size(policy_, state);
    if (size >= pool_size(policy_, origin_)) return true;
    MilliCpu requested = options_.requested;
    for (const Pod* const pod : pods_)
      requested.count += shared_pool_request(*pod, state).count;
    return requested <= size;
  }

  // A container that has fewer CPUs than it requests asks again.
  CpuState admit_unsatisfied(CpuState state) const {
    for (const Pod* const pod : pods_) {
      if (unsatisfied_containers(state, *pod, mode()) == 0) continue;
      auto next = admit(policy_, without(state, pod->uid), *pod);
      if (next && pool_is_sufficient(*next)) state = *std::move(next);
    }
    return state;
  }

  // All of them come back; if the pool cannot spare what all request, those that had CPUs come
  // first.
  std::optional<CpuState> readmit(const CpuState& state, const Pods& order) const {
    auto next = admitted(state, order);
    if (next && !pool_is_sufficient(*next)) {
      Pods served;
      std::ranges::copy_if(order, std::back_inserter(served),
                           [&](const Pod* pod) { return origin_.entries.contains(pod->uid); });
      next = admitted(state, served);
    }
    if (next) *next = admit_unsatisfied(*std::move(next));
    return next;
  }

  std::optional<CpuState> repack_all(const Pods& order) const {
    CpuState state = origin_;
    for (const Pod* const pod : order)
      state = without(std::move(state), pod->uid);
    return readmit(state, order);
  }

  // These leave, and come back to what is free then.
  std::optional<CpuState> repack_pods(CpuState state, const Pods& leaving) const {
    for (const Pod* const pod : leaving)
      state = without(std::move(state), pod->uid);
    return readmit(state, by_size(leaving));
  }

  // The pod gets back its original CPUs; containers that now have some of them move elsewhere.
  std::optional<CpuState> restore_original(CpuState state, const Pod& pod) const {
    const auto original = origin_.entries.find(pod.uid);
    if (original == origin_.entries.end()) return std::nullopt;
    Pods displaced;
    for (const Pod* const other : pods_) {
      const auto now = state.entries.find(other->uid);
      if (other->uid != pod.uid && now != state.entries.end() &&
          overlaps(original->second, now->second))
        displaced.push_back(other);
    }
    state = without(std::move(state), pod.uid);
    for (const Pod* const other : displaced)
      state = without(std::move(state), other->uid);
    state.entries[pod.uid] = original->second;
    state.default_set -= assigned_cpus(state);
    return admitted(std::move(state), by_size(displaced));
  }

  struct HillClimb {
    CpuState state;
    Score score;
    int tries = 0;
    bool has_attempts_left() const { return tries < kMaxRepackTries; }
  };

  bool accept_if_better(HillClimb& hill_climb, std::optional<CpuState> next) const {
    ++hill_climb.tries;
    if (!next || !pool_is_sufficient(*next)) return false;
    const Score reached = score(*next);
    if (reached >= hill_climb.score) return false;
    hill_climb.state = *std::move(next);
    hill_climb.score = reached;
    return true;
  }

  bool step(HillClimb& hill_climb) const {
    bool improved = false;
    for (const Pod* const pod : pods_) {
      if (hill_climb.has_attempts_left())
        improved = accept_if_better(hill_climb, repack_pods(hill_climb.state, {pod})) || improved;
      if (hill_climb.has_attempts_left())
        improved =
            accept_if_better(hill_climb, restore_original(hill_climb.state, *pod)) || improved;
    }
    if (improved) return true;
    for (std::size_t i = 0; i < pods_.size(); ++i)
      for (std::size_t j = i + 1; j < pods_.size() && hill_climb.has_attempts_left(); ++j)
        if (accept_if_better(hill_climb, repack_pods(hill_climb.state, {pods_[i], pods_[j]})))
          return true;
    return false;
  }

  // Better step by step, until no step is better.
  CpuState hill_climb(CpuState state) const {
    const Score start = score(state);
    HillClimb hill_climb{std::move(state), start};
    while (hill_climb.has_attempts_left() && step(hill_climb)) {
    }
    return std::move(hill_climb.state);
  }

  const StaticPolicy& policy_;
  const CpuState& origin_;
  SharedPoolOptions options_;  // of all but those below
  Pods pods_;
};

}  // namespace

int RepackPlan::moved_cpus() const {
  return cpus_of(moves);
}

RepackPlan repack(const StaticPolicy& policy, const CpuState& state,
                  std::span<const Pod* const> pods, const SharedPoolOptions& pool) {
  const Search search(policy, state, pods, pool);
  RepackPlan done{
      .state = search.best(), .moves = {}, .before = search.packing_quality(state), .after = {}};
  done.moves = moves_between(state, done.state);
  done.after = search.packing_quality(done.state);
  return done;
}

}  // namespace headroom
