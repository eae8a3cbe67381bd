// SPDX-License-Identifier: Apache-2.0
#include "judge/resources/pod_resources.h"

#include <headroom/quantity.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace headroom {
namespace {

constexpr std::array<std::string_view, 2> kCounted{"cpu", "memory"};

// What counts towards the class: cpu and memory above zero. A zero counts as absent.
struct Sums {
  std::array<Quantity, kCounted.size()> totals;

  void add(const ResourceList& list) {
    for (std::size_t i = 0; i < kCounted.size(); ++i) {
      const auto entry = list.find(kCounted[i]);
      if (entry != list.end() && entry->second.sign() > 0) totals[i] += entry->second;
    }
  }
  bool none() const {
    return std::all_of(totals.begin(), totals.end(), [](const auto& t) { return t.is_zero(); });
  }
  friend bool operator==(const Sums&, const Sums&) = default;
};

bool fully_limited(const Container& container) {
  return std::all_of(kCounted.begin(), kCounted.end(), [&](std::string_view resource) {
    const auto limit = container.limits.find(resource);
    return limit != container.limits.end() && limit->second.sign() > 0;
  });
}

}  // namespace

QosClass qos_class(const Pod& pod) {
  if (pod.declared_qos) return *pod.declared_qos;

  Sums requests;
  Sums limits;
  bool all_limited = true;
  const auto count = [&](const Container& container) {
    requests.add(container.requests);
    limits.add(container.limits);
    all_limited = all_limited && fully_limited(container);
  };
  if (has_pod_level_resources(pod)) {
    count(*pod.pod_level);
  } else {
    std::for_each(pod.init_containers.begin(), pod.init_containers.end(), count);
    std::for_each(pod.containers.begin(), pod.containers.end(), count);
  }
  if (requests.none() && limits.none()) return QosClass::kBestEffort;
  // Sums, not container by container: {request 1, limit 2} beside {2, 1} is Guaranteed upstream.
  return all_limited && requests == limits ? QosClass::kGuaranteed : QosClass::kBurstable;
}

namespace {

const Quantity* find(const ResourceList& list, std::string_view resource) {
  const auto entry = list.find(resource);
  return entry == list.end() ? nullptr : &entry->second;
}

void add(ResourceList& sum, const ResourceList& more) {
  for (const auto& [resource, quantity] : more)
    sum[resource] += quantity;
}

void raise(ResourceList& most, const ResourceList& other) {
  for (const auto& [resource, quantity] : other) {
    const auto [entry, added] = most.try_emplace(resource, quantity);
    if (!added) entry->second = std::max(entry->second, quantity);
  }
}

// The largest sum that the pod's containers need at one time: all regular ones with all sidecars,
// or, before those start, one init container with the sidecars that started before it.
ResourceList at_once(const Pod& pod, ResourceList Container::*list) {
  ResourceList running;
  ResourceList starting;
  for (const Container& container : pod.init_containers) {
    if (container.sidecar) {
      add(running, container.*list);
      continue;
    }
    ResourceList step = running;
    add(step, container.*list);
    raise(starting, step);
  }
  for (const Container& container : pod.containers)
    add(running, container.*list);
  raise(running, starting);
  return running;
}

bool is_huge_page(std::string_view resource) {
  return resource.starts_with("hugepages-");
}

bool is_pod_level(std::string_view resource) {
  return resource == "cpu" || resource == "memory" || is_huge_page(resource);
}

bool names_pod_level(const ResourceList& list) {
  return std::any_of(list.begin(), list.end(),
                     [](const auto& entry) { return is_pod_level(entry.first); });
}

// spec.resources replaces the sums of the resources that it names.
ResourceList declared(const Pod& pod, ResourceList Container::*list) {
  ResourceList sum = at_once(pod, list);
  if (pod.pod_level)
    for (const auto& [resource, quantity] : *pod.pod_level.*list)
      sum.insert_or_assign(resource, quantity);
  return sum;
}

}  // namespace

bool has_pod_level_resources(const Pod& pod) {
  return pod.pod_level &&
         (names_pod_level(pod.pod_level->requests) || names_pod_level(pod.pod_level->limits));
}

void default_pod_level_resources(Pod& pod) {
  if (!has_pod_level_resources(pod)) return;
  ResourceList& requests = pod.pod_level->requests;
  ResourceList& limits = pod.pod_level->limits;
  for (const auto& [resource, limit] : at_once(pod, &Container::limits))
    if (is_huge_page(resource) && !requests.contains(resource)) limits.emplace(resource, limit);
  if (!names_pod_level(limits)) return;
  for (const auto& [resource, request] : at_once(pod, &Container::requests))
    if (is_pod_level(resource) && !is_huge_page(resource)) requests.emplace(resource, request);
  for (const auto& [resource, limit] : limits)
    if (is_pod_level(resource)) requests.emplace(resource, limit);
}

Quantity eviction_request(const Pod& pod, std::string_view resource) {
  Quantity request;
  if (has_pod_level_resources(pod)) {
    if (const auto* whole = find(pod.pod_level->requests, resource)) request = *whole;
  } else {
    const ResourceList sums = at_once(pod, &Container::requests);
    if (const auto* sum = find(sums, resource)) request = *sum;
  }
  const auto* overhead = find(pod.overhead, resource);
  if (overhead && !request.is_zero()) request += *overhead;
  return request;
}

ResourceList pod_requests(const Pod& pod) {
  ResourceList requests = declared(pod, &Container::requests);
  add(requests, pod.overhead);
  return requests;
}

ResourceList pod_limits(const Pod& pod) {
  ResourceList limits = declared(pod, &Container::limits);
  for (auto& [resource, limit] : limits) {
    const auto* overhead = find(pod.overhead, resource);
    if (overhead && !limit.is_zero()) limit += *overhead;
  }
  return limits;
}

bool is_critical(const Pod& pod) {
  return pod.is_static || pod.priority >= kSystemCriticalPriority;
}

}  // namespace headroom
