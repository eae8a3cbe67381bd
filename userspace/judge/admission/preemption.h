// SPDX-License-Identifier: Apache-2.0
// Preemption: which pods a critical pod displaces (kubelet: lifecycle and preemption).
#pragma once

#include "judge/admission/node_state.h"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace headroom {

// A critical pod may displace pods that are not critical, and any pod displaces those of lower
// priority.
bool may_preempt(const PodOnNode& pod, const PodOnNode& other);

// Indices into node.pods, in the order they were chosen: Guaranteed ones only for what all others
// together would not free, Burstable before BestEffort likewise; among one class always the pod
// nearest to what is still missing. Absent: not even all of them would do.
std::optional<std::vector<std::size_t>> select_preemption_victims(
    const PodOnNode& pod, const NodeState& node, std::span<const Shortage> shortages);

}  // namespace headroom
