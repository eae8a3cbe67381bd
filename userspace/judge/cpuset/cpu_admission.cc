// SPDX-License-Identifier: Apache-2.0
#include "judge/cpuset/cpu_admission.h"

#include "judge/cpuset/policy/static_policy.h"
#include "judge/resources/pod_resources.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace headroom {
namespace {

using Step = tl::expected<ResourceState, CpuRefusal>;

class PodAdmission {
 public:
  PodAdmission(const ResourceManagers& managers, const Pod& pod, const OtherHints& others,
               const MemoryState& memory)
      : managers_(managers),
        pod_(pod),
        others_(others),
        // A pod that has its memory gets none again: not for init containers that have finished.
        assigns_memory_(managers.memory && !managers.memory->is_served(memory, pod)) {}

  // The whole pod's hint where that is the scope.
  std::optional<CpuRefusal> start(const ResourceState& state) {
    if (!whole_pod()) return std::nullopt;
    const auto near = affinity(state, nullptr);
    if (!near) return near.error();
    of_pod_ = *near;
    return std::nullopt;
  }

  bool gets_pool() const { return has_pod_pool(pod_, mode()); }

  // The pod's pool of CPUs and its memory, for all containers together.
  Step add_pool(ResourceState state) const {
    if (managers_.cpus) {
      auto cpus = managers_.cpus->allocate_pod(std::move(state.cpus), pod_, of_pod_.nodes);
      if (!cpus) return tl::make_unexpected(cpus.error());
      state.cpus = *std::move(cpus);
    }
    if (assigns_memory_) {
      auto memory = managers_.memory->allocate_pod(std::move(state.memory), pod_, of_pod_);
      if (!memory)
        return tl::make_unexpected(
            std::visit([](const auto& refusal) { return CpuRefusal{refusal}; }, memory.error()));
      state.memory = *std::move(memory);
    }
    return state;
  }

  Step add(ResourceState state, const Container& container) const {
    if (whole_pod()) return allocate(std::move(state), container, of_pod_);
    const auto near = affinity(state, &container);
    if (!near) return tl::make_unexpected(near.error());
    return allocate(std::move(state), container, *near);
  }

 private:
  // Null container: of the pod.
  tl::expected<NumaHint, CpuRefusal> affinity(const ResourceState& state,
                                              const Container* container) const {
    std::vector<ProviderHints> hints;
    if (others_) hints = others_(container);
    if (const StaticPolicy* const cpus = managers_.cpus) {
      ProviderHints own =
          container ? cpus->hints(state.cpus, pod_, *container) : cpus->hints(state.cpus, pod_);
      if (!own.empty())
        hints.push_back(device_hints(cpus->config().devices, cpus->topology().numa(), pod_));
      hints.push_back(std::move(own));
    }
    if (managers_.memory && (!container || has_memory_hints(state, *container)))
      hints.push_back(container ? managers_.memory->hints(state.memory, pod_, *container)
                                : managers_.memory->hints(state.memory, pod_));
    const MergedHint merged = merge_hints(managers_.rules, *managers_.numa, hints);
    if (!merged.admit)
      return tl::make_unexpected(CpuRefusal{TopologyAffinityError{
          .pod = has_pod_level_resources(pod_) ? mode() : PodLevelMode::kOff}});
    return merged.best;
  }

  bool has_memory_hints(const ResourceState& state, const Container& container) const {
    return assigns_memory_ || memory_blocks(state.memory, pod_.uid, container.name);
  }

  Step allocate(ResourceState state, const Container& container, const NumaHint& near) const {
    if (managers_.cpus) {
      auto cpus = managers_.cpus->allocate(std::move(state.cpus), pod_, container, near.nodes);
      if (!cpus) return tl::make_unexpected(cpus.error());
      state.cpus = *std::move(cpus);
    }
    if (assigns_memory_) {
      auto memory = managers_.memory->allocate(std::move(state.memory), pod_, container, near);
      if (!memory) return tl::make_unexpected(CpuRefusal{memory.error()});
      state.memory = *std::move(memory);
    }
    return state;
  }

  bool whole_pod() const { return managers_.rules.scope == TopologyScope::kPod; }
  PodLevelMode mode() const { return managers_.rules.pod_level_mode(); }

  const ResourceManagers& managers_;
  const Pod& pod_;
  const OtherHints& others_;
  const bool assigns_memory_;
  NumaHint of_pod_;
};

}  // namespace

tl::expected<ResourceState, ContainerRefusal> admit(const ResourceManagers& managers,
                                                    const ResourceState& state, const Pod& pod,
                                                    const OtherHints& others) {
  PodAdmission admitting(managers, pod, others, state.memory);
  if (const auto refusal = admitting.start(state))
    return tl::make_unexpected(ContainerRefusal{"", *refusal});
  ResourceState next = state;
  if (admitting.gets_pool()) {
    Step step = admitting.add_pool(std::move(next));
    if (!step) return tl::make_unexpected(ContainerRefusal{"", step.error()});
    return *std::move(step);
  }
  for (const auto* const list : {&pod.init_containers, &pod.containers})
    for (const Container& container : *list) {
      Step step = admitting.add(std::move(next), container);
      if (!step) return tl::make_unexpected(ContainerRefusal{container.name, step.error()});
      next = *std::move(step);
    }
  return next;
}

tl::expected<CpuState, ContainerRefusal> admit(const StaticPolicy& policy, const CpuState& state,
                                               const Pod& pod, const OtherHints& others) {
  const ResourceManagers managers{.cpus = &policy,
                                  .memory = nullptr,
                                  .rules = policy.config().topology_rules,
                                  .numa = &policy.topology().numa()};
  auto next = admit(managers, {.cpus = state, .memory = {}}, pod, others);
  if (!next) return tl::make_unexpected(next.error());
  return std::move(next->cpus);
}

namespace {

MilliCpu milli_cpu_of(int cpus) {
  return {std::int64_t{1000} * cpus};
}

MilliCpu reserved_amount(const StaticPolicy& policy) {
  const CpuReservation& reservation = policy.config().reservation;
  const MilliCpu all = milli_cpu_of(policy.reserved().size());
  if (reservation.cpus || reservation.amount.count == 0) return all;
  return std::min(all, reservation.amount);
}

MilliCpu cpu_of(const ResourceList& list) {
  const auto cpu = list.find("cpu");
  return {cpu == list.end() ? 0 : std::max<std::int64_t>(0, cpu->second.milli_value())};
}

}  // namespace

// Under strict reservation the reserved CPUs are no part of the default set.
MilliCpu pool_size(const StaticPolicy& policy, const CpuState& state) {
  const MilliCpu all = milli_cpu_of(state.default_set.overlap(policy.topology().cpus()));
  if (policy.config().options.strict_reservation) return all;
  return {std::max<std::int64_t>(0, all.count - reserved_amount(policy).count)};
}

namespace {

// A pod with resources of its own requests the same, whatever its containers have of them: without
// their exclusive CPUs, which those of ordinary init containers are not for long.
MilliCpu pod_level_rest(const Pod& pod, const CpuState& state) {
  CpuSet own;
  bool shares = false;
  const auto add = [&](const Container& container) {
    const CpuSet* const cpus = exclusive_cpus(state, pod.uid, container.name);
    shares = shares || !cpus;
    if (cpus) own |= *cpus;
  };
  for (const Container& container : pod.init_containers)
    if (container.sidecar) add(container);
  for (const Container& container : pod.containers)
    add(container);
  if (!shares) return {};
  return {
      std::max<std::int64_t>(0, cpu_of(pod_requests(pod)).count - milli_cpu_of(own.size()).count)};
}

}  // namespace

MilliCpu shared_pool_request(const Pod& pod, const CpuState& state) {
  if (!state.entries.contains(pod.uid)) return cpu_of(pod_requests(pod));
  if (has_pod_level_resources(pod)) return pod_level_rest(pod, state);
  Pod rest;
  rest.overhead = pod.overhead;
  const auto add = [&](const std::vector<Container>& from, std::vector<Container>& to) {
    for (const Container& container : from)
      if (!exclusive_cpus(state, pod.uid, container.name)) to.push_back(container);
  };
  add(pod.init_containers, rest.init_containers);
  add(pod.containers, rest.containers);
  if (rest.init_containers.empty() && rest.containers.empty()) return {};
  return cpu_of(pod_requests(rest));
}

std::optional<ContainerRefusal> find_pool_refusal(const StaticPolicy& policy,
                                                  const CpuState& before, const CpuState& after,
                                                  const Pod& pod, MilliCpu requested,
                                                  const CpuSet& previous) {
  const CpuSet taken = before.default_set - after.default_set;
  if (taken.size() <= previous.overlap(before.default_set)) return std::nullopt;
  const MilliCpu left = pool_size(policy, after);
  const MilliCpu needed{requested.count + shared_pool_request(pod, after).count};
  if (needed <= left) return std::nullopt;
  const int requested_cpus = exclusive_cpus_requested(pod, policy.pod_level_mode());
  return ContainerRefusal{"", SharedPoolError{requested_cpus, left, needed}};
}

}  // namespace headroom
