// SPDX-License-Identifier: Apache-2.0
// The rules of enforceNodeAllocatable (kubelet: cm/node_container_manager_linux.go).
#pragma once

#include "judge/allocatable/allocatable_policy.h"

#include <vector>

namespace headroom {

// Reads the list into the policy; what breaks a rule is added to `errors` in the kubelet's words
// and order.
void apply_enforcements(const AllocatableConfig& configured, AllocatablePolicy& policy,
                        std::vector<SettingError>& errors);

}  // namespace headroom
