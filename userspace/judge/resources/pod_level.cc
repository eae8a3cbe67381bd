// SPDX-License-Identifier: Apache-2.0
#include "judge/resources/pod_level.h"

#include "judge/resources/pod_resources.h"

#include <headroom/quantity.h>

#include <algorithm>

namespace headroom {
namespace {

bool requests_its_limit(const Container& container, std::string_view resource) {
  const auto request = container.requests.find(resource);
  const auto limit = container.limits.find(resource);
  return request != container.requests.end() && limit != container.limits.end() &&
         !request->second.is_zero() && request->second == limit->second;
}

// The first resource of which the parts use all.
std::optional<std::string> used_up(const PoolAmounts& pool, const PoolAmounts& parts) {
  for (const auto& [resource, amount] : pool) {
    const auto used = parts.find(resource);
    if ((used == parts.end() ? 0 : used->second) >= amount) return resource;
  }
  return std::nullopt;
}

}  // namespace

bool has_pod_pool(const Pod& pod, PodLevelMode mode) {
  return mode == PodLevelMode::kPod && has_pod_level_resources(pod);
}

bool is_guaranteed(const Container& container) {
  return requests_its_limit(container, "cpu") && requests_its_limit(container, "memory");
}

std::optional<EmptyPoolResource> find_empty_pool(
    const Pod& pod, const PoolAmounts& pool,
    const std::function<PoolAmounts(const Container&)>& part_of) {
  PoolAmounts parts;  // of sidecars so far, then of apps
  bool shares = false;
  const auto add = [&](const PoolAmounts& part) {
    shares = shares || part.empty();
    for (const auto& [resource, amount] : part)
      parts[resource] += amount;
  };
  for (const Container& container : pod.init_containers) {
    const PoolAmounts part = part_of(container);
    if (container.sidecar) {
      add(part);
      continue;
    }
    if (!part.empty()) continue;
    if (auto resource = used_up(pool, parts)) return EmptyPoolResource{*std::move(resource), true};
  }
  for (const Container& container : pod.containers)
    add(part_of(container));
  if (!shares) return std::nullopt;
  if (auto resource = used_up(pool, parts)) return EmptyPoolResource{*std::move(resource), false};
  return std::nullopt;
}

}  // namespace headroom
