// SPDX-License-Identifier: Apache-2.0
// Whether a kubelet runs on this host, by the names of its processes.
#pragma once

#include <filesystem>

namespace headroom::observe {

// False, too, where other users' processes are hidden from us.
bool kubelet_runs(const std::filesystem::path& proc = "/proc");

}  // namespace headroom::observe
