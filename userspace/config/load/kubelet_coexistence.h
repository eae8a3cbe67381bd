// SPDX-License-Identifier: Apache-2.0
// Beside a kubelet: it keeps slices, CPU sets and OOM scores itself, so that we only observe.
#pragma once

#include "config/config.h"
#include "config/yaml/yaml.h"

#include <string>
#include <vector>

namespace headroom::config {

// Where the configuration tells of a kubelet (headroom.kubernetes.kubelet.url), or one was found
// running: modes of slices and CPUs that nobody told are observe, and the container_* names are
// left to its cAdvisor, where two sources would count everything twice. Told to write where the
// configuration itself tells of a kubelet, they are complained of, in the document's lines; `file`
// is where these are. Two that keep the same cgroups write over each other, again and again.
void apply_kubelet_coexistence(const yaml::Node& document, const std::string& file,
                               bool kubelet_runs, Config& config, Diagnostics& diagnostics);

// What would be complained of, had the configuration told of the kubelet that runs.
std::vector<std::string> kubelet_conflict_warnings(const Config& config);

// Marks what was settled so.
void record_kubelet_coexistence(const yaml::Node& document, const Config& config,
                                ConfigSettings& settings);

}  // namespace headroom::config
