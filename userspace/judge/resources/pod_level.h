// SPDX-License-Identifier: Apache-2.0
// Pods with resources of their own (spec.resources) in the CPU manager and in the memory manager,
// by the kubelet's gate PodLevelResourceManagers (alpha in 1.36; enhancements 5526).
#pragma once

#include <headroom/pod.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace headroom {

enum class PodLevelMode : std::uint8_t {
  kOff,        // the gate is off: they get no exclusive CPUs and no memory of their own
  kContainer,  // each container by itself, as in a pod without resources of its own
  kPod,        // the pod gets one pool, and its containers divide it: topologyManagerScope: pod
};

// Whether the pod gets one pool, if it is Guaranteed.
bool has_pod_pool(const Pod& pod, PodLevelMode mode);

// Whether the container gets a part of its own in such a pod: its requests of CPU and of memory are
// above zero and equal its limits (kubelet: cm/qos).
bool is_guaranteed(const Container& container);

// Containers without a part of their own share what the others leave of the pool, and nothing is
// left (kubelet: EmptyPodSharedPoolError).
struct EmptyPodPool {
  std::string what;  // the kubelet's words
  friend bool operator==(const EmptyPodPool&, const EmptyPodPool&) = default;
};

// The amounts of a pool or of a part of it, by resource.
using PoolAmounts = std::map<std::string, std::int64_t, std::less<>>;

struct EmptyPoolResource {
  std::string resource;  // the first one of which nothing is left
  bool for_init_container = false;
};
// `part_of`: what a container has for itself; empty: it shares. Absent: something is left for all
// that share. As in the kubelet, an ordinary init container takes nothing from the others.
std::optional<EmptyPoolResource> find_empty_pool(
    const Pod& pod, const PoolAmounts& pool,
    const std::function<PoolAmounts(const Container&)>& part_of);

}  // namespace headroom
