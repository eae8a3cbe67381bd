// SPDX-License-Identifier: Apache-2.0
// Whether a node is one a pod asks for: its name, labels, ports.
#pragma once

#include "judge/admission/node_state.h"

#include <headroom/placement.h>

#include <string_view>

namespace headroom {

bool matches(const NodeTerm& term, const NodeState& node);

// nodeSelector and the required node affinity; the name is asked for elsewhere.
bool selects(const Placement& placement, const NodeState& node);

// One port cannot be had twice: equal in number and protocol, at one address or at all of them.
bool conflict(const HostPort& a, const HostPort& b);
// Whether all the pod's are free.
bool ports_free(const PodOnNode& pod, const NodeState& node);

}  // namespace headroom
