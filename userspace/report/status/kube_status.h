// SPDX-License-Identifier: Apache-2.0
// The status file of headroom-kube. Read on request, never on the loop's thread.
#pragma once

#include <filesystem>

#include <nlohmann/json_fwd.hpp>

namespace headroom::report {

// {"kubelet": {...}, "api": {...}}; null if the file is missing, larger than 1 MiB, or not a JSON
// object.
nlohmann::ordered_json kubernetes_json(const std::filesystem::path& file);

}  // namespace headroom::report
