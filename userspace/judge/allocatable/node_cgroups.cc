// SPDX-License-Identifier: Apache-2.0
#include "judge/allocatable/node_cgroups.h"

#include "judge/resources/pod_resources.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace headroom {
namespace {

__extension__ using Wide = __int128;  // sums and percentages of saturated amounts
using Reservation = MemoryQos::Reservation;
using Role = NodeCgroup::Role;

std::int64_t narrowed(Wide value) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::clamp<Wide>(value, 0, kMax));
}

Bytes sum(Bytes a, Bytes b) {
  return {narrowed(Wide{a.count} + b.count)};
}

// A limit of 0 would allow nothing; it means "no limit", as in the kubelet.
template <class T>
std::optional<Limit<T>> limit_to(const std::optional<T>& amount) {
  if (!amount || amount->count <= 0) return std::nullopt;
  return Limit<T>(*amount);
}

// The four settings that limit a cgroup. There is no cpu.max at these levels: CPU is shared by
// weight, and idle CPU may be used by others.
CgroupValues limit_to_amounts(const Amounts& amounts, WeightFormula weights) {
  CgroupValues values;
  if (amounts.cpu) values.cpu_weight = weight_of(shares_of(*amounts.cpu), weights);
  values.memory_max = limit_to(amounts.memory);
  values.pids_max = limit_to(amounts.pids);
  for (const auto& [size, bytes] : amounts.huge_pages)
    values.hugetlb_max.emplace(size, bytes);
  return values;
}

// Protects the pods' requests, at most up to what the pods can get: a memory.min beyond capacity
// makes the kernel kill others. Zero is written as well, or the protection of ended pods would
// stay.
//
// The kubelet makes the sum of both classes the memory.min of all pods. Here the Burstable part is
// a memory.low at that level too: the memory.low of the class has no effect below a parent without
// one, and for memory.min the kernel kills rather than reclaim.
void protect_pods(CgroupValues& kubepods, const QosTierSums& sums, Reservation reservation,
                  const std::optional<Bytes>& room) {
  const auto within = [&](Bytes wanted) { return room ? std::min(wanted, *room) : wanted; };
  switch (reservation) {
    case Reservation::kUnmanaged:
      return;
    case Reservation::kNone:
      kubepods.memory_min = Bytes{0};
      return;
    case Reservation::kTiered:
      kubepods.memory_min = within(sums.guaranteed_memory);
      kubepods.memory_low = within(sums.burstable_memory);
      return;
  }
}

void protect_tier(CgroupValues& burstable, const QosTierSums& sums, Reservation reservation,
                  const std::optional<Bytes>& room) {
  const Bytes wanted = room ? std::min(sums.burstable_memory, *room) : sums.burstable_memory;
  switch (reservation) {
    case Reservation::kUnmanaged:
      return;
    case Reservation::kNone:
      burstable.memory_low = Bytes{0};
      return;
    case Reservation::kTiered:
      burstable.memory_low = wanted;
      return;
  }
}

Bytes minus_percentage(Bytes from, Bytes requested, int percent) {
  return {narrowed(Wide{from.count} - Wide{requested.count} * percent / 100)};
}

// Zero or less means no limit, as in the kubelet: a limit of 0 would kill all pods of the class. It
// is written, or an earlier limit would stay.
Limit<Bytes> tier_limit(Bytes left) {
  if (left <= Bytes{0}) return Limit<Bytes>::max();
  return left;
}

// qosReserved: a share of the requests of the higher classes is withheld from the lower ones.
void reserve_from_tiers(CgroupValues& burstable, CgroupValues& best_effort, Bytes room,
                        const QosTierSums& sums, int percent) {
  const Bytes left = minus_percentage(room, sums.guaranteed_memory, percent);
  burstable.memory_max = tier_limit(left);
  best_effort.memory_max = tier_limit(minus_percentage(left, sums.burstable_memory, percent));
}

void add_pods(std::vector<NodeCgroup>& all, const AllocatablePolicy& policy,
              const Amounts& capacity, const NodeAllocatable& node, const PodSizing& sizing,
              const QosTierSums& sums) {
  const auto burstable_name = qos_tier_name(*policy.kubepods, QosClass::kBurstable);
  const auto best_effort_name = qos_tier_name(*policy.kubepods, QosClass::kBestEffort);
  if (!burstable_name || !best_effort_name)
    return;  // a root that is too deep was refused with the policy

  // Written even when `pods` is not enforced: with the default weight pods would starve.
  CgroupValues kubepods =
      limit_to_amounts(policy.enforce_pods ? node.pods_limit : capacity, sizing.weights);
  CgroupValues burstable{.cpu_weight = weight_of(shares_of(sums.burstable_cpu), sizing.weights)};
  CgroupValues best_effort{.cpu_weight = weight_of(kMinShares, sizing.weights)};
  for (const auto& [size, bytes] : capacity.huge_pages) {
    burstable.hugetlb_max.emplace(size, Limit<Bytes>::max());
    best_effort.hugetlb_max.emplace(size, Limit<Bytes>::max());
  }
  const auto& room = node.pods_limit.memory;
  protect_pods(kubepods, sums, sizing.memory_qos.reservation, room);
  protect_tier(burstable, sums, sizing.memory_qos.reservation, room);
  if (policy.qos_reserved_memory && room)
    reserve_from_tiers(burstable, best_effort, *room, sums, *policy.qos_reserved_memory);

  all.push_back({Role::kPods, policy.kubepods->path(policy.driver), std::move(kubepods)});
  all.push_back({Role::kBurstable, burstable_name->path(policy.driver), std::move(burstable)});
  all.push_back({Role::kBestEffort, best_effort_name->path(policy.driver), std::move(best_effort)});
}

CgroupValues reserved_values(const Reserve& reserve, const Amounts& capacity,
                             const PodSizing& sizing) {
  CgroupValues values = limit_to_amounts(reserve.amounts, sizing.weights);
  if (reserve.enforcement == Enforcement::kCompressible) return {.cpu_weight = values.cpu_weight};
  // Huge pages cannot be reserved, so an enforced reservation has none.
  for (const auto& [size, bytes] : capacity.huge_pages)
    values.hugetlb_max.emplace(size, Bytes{0});
  if (sizing.memory_qos.reservation != Reservation::kUnmanaged)
    values.memory_min = values.memory_max;
  return values;
}

void add_reserve(std::vector<NodeCgroup>& all, Role role, const Reserve& reserve,
                 const Amounts& capacity, const PodSizing& sizing) {
  if (reserve.enforcement == Enforcement::kNone) return;
  all.push_back({role, reserve.path, reserved_values(reserve, capacity, sizing)});
}

}  // namespace

QosTierSums qos_tier_sums(std::span<const Pod* const> active) {
  QosTierSums sums;
  for (const Pod* const pod : active) {
    const QosClass qos = qos_class(*pod);
    if (qos == QosClass::kBestEffort) continue;
    ResourceList requests = pod_requests(*pod);
    const Bytes memory{requests["memory"].value()};
    if (qos == QosClass::kGuaranteed) {
      sums.guaranteed_memory = sum(sums.guaranteed_memory, memory);
      continue;
    }
    sums.burstable_memory = sum(sums.burstable_memory, memory);
    sums.burstable_cpu.count =
        narrowed(Wide{sums.burstable_cpu.count} + requests["cpu"].milli_value());
  }
  return sums;
}

std::vector<NodeCgroup> node_cgroups(const AllocatablePolicy& policy, const Amounts& capacity,
                                     const NodeAllocatable& node, const PodSizing& sizing,
                                     const QosTierSums& sums) {
  std::vector<NodeCgroup> all;
  if (policy.kubepods) add_pods(all, policy, capacity, node, sizing, sums);
  add_reserve(all, Role::kKubeReserved, policy.kube, capacity, sizing);
  add_reserve(all, Role::kSystemReserved, policy.system, capacity, sizing);
  return all;
}

}  // namespace headroom
