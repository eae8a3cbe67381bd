// SPDX-License-Identifier: Apache-2.0
#include "judge/cpuset/pool_guard.h"

#include "judge/cpuset/policy/static_policy.h"
#include "judge/resources/pod_resources.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace headroom {
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

MilliCpu shared_pool_request(const Pod& pod, const CpuState& state) {
  if (!state.entries.contains(pod.uid)) return cpu_of(pod_requests(pod));
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
  return ContainerRefusal{"", SharedPoolError{exclusive_cpus_requested(pod), left, needed}};
}

}  // namespace headroom
