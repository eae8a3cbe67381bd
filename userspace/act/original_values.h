// SPDX-License-Identifier: Apache-2.0
// The state files with the original values of what headroomd changes: saved before each write, so
// that they can be restored after a crash; headroomctl changes shows them.
#pragma once

#include "act/kill/oom_scores.h"
#include "act/limits/cgroup_overrides.h"
#include "act/limits/memory_high_overrides.h"
#include "act/limits/memory_max_overrides.h"
#include "act/limits/suspended_limits.h"
#include "base/state/state_file.h"

#include <filesystem>
#include <map>

namespace headroom::state {

template <>
inline constexpr unsigned kEnumerators<act::OverriddenFile> = 5;

HEADROOM_FIELDS(act::OriginalMemoryHigh, path, found, set, had_setting);
HEADROOM_FIELDS(act::OriginalMemoryMax, path, found, set, ceiling, brake, high_found);
HEADROOM_FIELDS(act::OriginalValue, path, found, set, setting, weight, clearing);
HEADROOM_FIELDS(act::OriginalLimits, path, values);
HEADROOM_FIELDS(act::OriginalOomScores, path, applied, values, applied_before);

}  // namespace headroom::state

namespace headroom::act {

using MemoryHighFile = state::StateFile<MemoryHighOverrides::Found>;
using MemoryMaxFile = state::StateFile<MemoryMaxOverrides::Found>;
using CgroupOverridesFile = state::StateFile<CgroupOverrides::Found>;
using SuspendedLimitsFile = state::StateFile<SuspendedLimits::Found>;
using OomScoreFile = state::StateFile<std::map<CgroupId, OriginalOomScores>>;

MemoryHighFile memory_high_file(const std::filesystem::path& state_dir);
MemoryMaxFile memory_max_file(const std::filesystem::path& state_dir);
CgroupOverridesFile cpu_burst_file(const std::filesystem::path& state_dir);
CgroupOverridesFile cpu_suppress_file(const std::filesystem::path& state_dir);
CgroupOverridesFile pod_swap_file(const std::filesystem::path& state_dir);
SuspendedLimitsFile suspended_limits_file(const std::filesystem::path& state_dir);
OomScoreFile oom_score_file(const std::filesystem::path& state_dir);

}  // namespace headroom::act
