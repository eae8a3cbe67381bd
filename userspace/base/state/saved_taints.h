// SPDX-License-Identifier: Apache-2.0
// SavedTaints: the taints of a node, as configured and as edited since, in the state file.
#pragma once

#include "base/state/state_file.h"

#include <headroom/taint.h>

#include <vector>

namespace headroom::state {

// `active`: what is in force, of the configuration and of edits.
struct SavedTaints {
  std::vector<Taint> configured;
  std::vector<Taint> active;
};

template <>
inline constexpr unsigned kEnumerators<TaintEffect> = kTaintEffectNames.size();

HEADROOM_FIELDS(Taint, key, value, effect);
HEADROOM_FIELDS(SavedTaints, configured, active);

inline constexpr const char* kTaintsFile = "taints.json";

}  // namespace headroom::state
