// SPDX-License-Identifier: Apache-2.0
#include "judge/resources/pod_resources.h"

#include <algorithm>

namespace headroom {
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

// The most the pod's containers hold at once: all regular ones beside all sidecars, or, before
// that, one init container beside the sidecars started so far.
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

// spec.resources overrides the sums of those resources it names.
ResourceList declared(const Pod& pod, ResourceList Container::*list) {
  ResourceList sum = at_once(pod, list);
  if (pod.pod_level)
    for (const auto& [resource, quantity] : *pod.pod_level.*list)
      sum.insert_or_assign(resource, quantity);
  return sum;
}

Quantity container_request(const Pod& pod, std::string_view resource) {
  Quantity request;
  for (const Container& container : pod.containers)
    if (const auto* own = find(container.requests, resource)) request += *own;
  for (const Container& container : pod.init_containers)
    if (const auto* own = find(container.requests, resource)) request = std::max(request, *own);
  return request;
}

}  // namespace

Quantity eviction_request(const Pod& pod, std::string_view resource) {
  // Pod-level requests replace the containers', as kubernetes/kubernetes 132277 has it (1.34).
  const auto* whole = pod.pod_level ? find(pod.pod_level->requests, resource) : nullptr;
  Quantity request = whole ? *whole : container_request(pod, resource);
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
