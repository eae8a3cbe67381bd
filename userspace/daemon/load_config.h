// SPDX-License-Identifier: Apache-2.0
// load_config(): the configuration as it applies to this machine, with every error in it.
#pragma once

#include "config/load/load.h"
#include "judge/allocatable/amounts.h"

#include <cstdint>
#include <filesystem>
#include <functional>

namespace headroom::daemon {

enum class LoadReason : std::uint8_t { kStart, kReload };

// A kubelet that was found running, or what it says of itself, is no reason not to run: what is
// wrong for that alone is logged as a warning, and the rest counts. On a reload what was in force
// stays rather than what the kubelet says is forgotten.
// `run_dir`: LoadContext::run_dir.
config::LoadResult load_config(const config::CommandLine& line, LoadReason occasion,
                               const std::function<Amounts(const config::Config&)>& capacity,
                               const std::filesystem::path& run_dir = {});

}  // namespace headroom::daemon
