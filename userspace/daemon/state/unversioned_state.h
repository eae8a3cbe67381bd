// SPDX-License-Identifier: Apache-2.0
// The state files of release 0.1, which had no version: read after an upgrade in the same boot. To
// be removed in release 0.2.
#pragma once

#include "base/state/saved_taints.h"

#include <headroom/judge.h>

#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace headroom::daemon {

// These return true, or throw a JSON exception.
bool decode_unversioned(const nlohmann::json& whole, std::vector<Victim>& victims);
bool decode_unversioned(const nlohmann::json& whole, std::vector<TaintTimer>& timers);
bool decode_unversioned(const nlohmann::json& whole, state::SavedTaints& taints);

}  // namespace headroom::daemon
