// SPDX-License-Identifier: Apache-2.0
// The texts of log lines and events; the kubelet's texts where it has them. Pure functions.
#pragma once

#include "report/eviction/eviction.h"

#include <headroom/decision.h>
#include <headroom/pod.h>
#include <headroom/quantity.h>
#include <headroom/signal.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace headroom::report {

// A container's usage beside its request, for the kubelet's message.
struct ContainerUse {
  std::string_view container;
  Quantity usage;
  Quantity request;
};

// The kubelet's message on an evicted pod, with its trailing space (kubelet: eviction/helpers.go).
// Containers are listed where they exceed their request, and only for resources the kubelet
// compares: memory and ephemeral-storage.
std::string pod_message(Signal signal, std::optional<Quantity> threshold,
                        std::optional<Quantity> available, std::span<const ContainerUse> uses);

// The kubelet's message on a pod over a limit of local storage.
std::string limit_message(const Reason& reason, const Pod& pod);

// An amount of `signal` in the format that the kubelet uses: binary for bytes, decimal for inodes
// and tasks.
Quantity quantity_of(Signal signal, std::int64_t amount);

// The kubelet's event reasons.
inline constexpr std::string_view kThresholdMet = "EvictionThresholdMet";
inline constexpr std::string_view kEvictedReason = "Evicted";
std::string_view condition_reason(Condition condition, bool now);

// "default/hog"
std::string pod_name(const Pod& pod);
// "1.2Gi over its request of 0", "100Mi under its request of 200Mi", "usage unknown, request 0";
// for resources without requests "5000 tasks", "usage unknown".
std::string over_request(Signal signal, std::optional<std::int64_t> usage, std::int64_t request);
// "nodefs.available 52Mi, below its hard threshold of 100Mi"; "emptyDir cache uses 2Gi, over its
// limit of 1Gi".
std::string reason_text(const Reason& reason, const Pod* pod);
// Node-level reclaim: "reclaiming dead containers and unused images: nodefs.available …"
std::string reclaim_line(const Outcome& outcome);
// An asynchronous action of an eviction: "the pre-stop commands of default/db ended".
std::string async_action_line(const Outcome& outcome);

// A step of the ladder: "ladder: take 64Mi of page cache from default/web: memory.available …"
std::string ladder_line(const Outcome& outcome);

// "EvictionThresholdMet: Attempting to reclaim memory: memory.available 52Mi, below its hard
// threshold of 100Mi"
std::string threshold_line(Signal signal, bool hard, std::int64_t limit, std::int64_t available);
// "NodeHasInsufficientMemory: MemoryPressure is now true"
std::string condition_line(Condition condition, bool now);
// What the act on a pod did: "killed default/hog (BestEffort, 1.2Gi over its request of 0): …"
std::string outcome_line(const Outcome& outcome, std::string_view qos);
// How the eviction ended: "evicted default/hog: gone 85ms after its signal, 1.2Gi returned"
std::string ending_line(const Eviction& eviction);
}  // namespace headroom::report
