// SPDX-License-Identifier: Apache-2.0
// Where headroomctl run keeps what must not outlast a boot.
#pragma once

#include "config/config.h"

#include <filesystem>

namespace headroom::config {

// Manifests of the pods it started: they end with the machine, and so do these.
inline std::filesystem::path run_manifests(const Config& config) {
  return config.state_dir / "manifests";
}

// Locked from the request for admission until the admitted pod is counted.
inline std::filesystem::path run_lock(const Config& config) {
  return config.state_dir / "run.lock";
}

}  // namespace headroom::config
