// SPDX-License-Identifier: Apache-2.0
// Writable layers of running containers: the upper directory of the overlay a container's processes
// have for a root, whichever runtime mounted it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::observe {

// From the text of /proc/PID/mountinfo; absent: the root is no overlay.
std::optional<std::string> upper_directory(std::string_view mountinfo);

// Of every cgroup directly below a pod's. Nothing where its processes share the host's root.
std::vector<std::string> writable_layers(const std::string& pod_cgroup_directory);

}  // namespace headroom::observe
