// SPDX-License-Identifier: Apache-2.0
#include "judge/cpuset/current_cpus.h"

#include "judge/cpuset/allocation/take_cpus.h"
#include "judge/cpuset/assign_cpus.h"

#include <algorithm>
#include <optional>

namespace headroom {
namespace {

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

class NearbyCpus {
 public:
  explicit NearbyCpus(const StaticPolicy& policy)
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

}  // namespace

CpuState keep_current_cpus(const StaticPolicy& policy, const CpuState& before, CpuState assigned,
                           const Pod& pod, const ContainerCpus& previous, bool same_nodes) {
  // Evenly over NUMA nodes is only what the policy made.
  if (previous.empty() || policy.config().options.distribute_across_numa ||
      shares_init_cpus(assigned, pod))
    return assigned;
  const NearbyCpus nearby(policy);
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
    const auto resized = nearby.resized(has, free, old.size());
    if (!resized || !nearby.is_as_near(*resized, old, same_nodes)) continue;
    // Its CPUs may now belong to another container of the pod.
    if (!resized->subset_of(next.default_set | old)) continue;
    next.default_set = (next.default_set | old) - *resized;
    next.entries[pod.uid][name] = *resized;
  }
  // In the scope of the pod its containers lie near together.
  const bool whole = policy.config().topology_rules.scope == TopologyScope::kPod;
  if (whole && !nearby.is_as_near(of_pod(next, pod), of_pod(assigned, pod), same_nodes))
    return assigned;
  return next;
}

}  // namespace headroom
