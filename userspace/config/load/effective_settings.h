// SPDX-License-Identifier: Apache-2.0
// The whole configuration as settings: the value of the command line, else of the files, else the
// default.
#pragma once

#include "config/config.h"
#include "config/flags/command_line.h"
#include "config/keys.h"
#include "config/sections/section_settings.h"
#include "config/yaml/yaml.h"

#include <functional>
#include <string>
#include <vector>

namespace headroom::config {

// Beside a kubelet: it keeps slices, CPU sets and OOM scores itself, so that we only observe.

// If a kubelet is configured (headroom.kubernetes.kubelet.url) or was found running, unset modes of
// slices and CPUs become observe, and the container_* metrics are left to its cAdvisor, because two
// sources would count everything twice. A mode that writes is an error if the configuration itself
// names a kubelet, reported at its line of the document (`file` is its name): two programs that
// keep the same cgroups overwrite each other again and again.
void apply_kubelet_coexistence(const yaml::Node& document, const std::string& file,
                               bool kubelet_runs, Config& config, Diagnostics& diagnostics);

// What would be an error if the running kubelet were configured.
std::vector<std::string> kubelet_conflict_warnings(const Config& config);

// Marks the settings that apply_kubelet_coexistence() changed.
void record_kubelet_coexistence(const yaml::Node& document, const Config& config,
                                ConfigSettings& settings);

// `place` says where a line of the document is: "/etc/headroom/headroom.yaml:3".
ConfigSettings effective_settings(const yaml::Node& document, const CommandLine& line,
                                  const EvictionSettings& eviction,
                                  const ReservedSettings& reserves,
                                  const std::function<std::string(int)>& location);

// The settings if nothing is configured.
ConfigSettings default_settings();

}  // namespace headroom::config
