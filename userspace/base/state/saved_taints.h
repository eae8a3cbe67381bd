// SPDX-License-Identifier: Apache-2.0
// SavedTaints: a node's taints in the state file, with the operator's edits.
#pragma once

#include "base/state/state_file.h"

#include <headroom/taint.h>

#include <vector>

namespace headroom::state {

// `active`: the taints in force.
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
