// SPDX-License-Identifier: Apache-2.0
// PodSizingSettings: what decides about the cgroups of every pod, as the file and the flags have
// it.
#pragma once

#include "config/config.h"
#include "config/flags/command_line.h"
#include "config/yaml/section.h"
#include "judge/allocatable/pod_sizing.h"

#include <map>
#include <string>

namespace headroom::config {

struct PodSizingSettings {
  PodSizingConfig values;
  struct Location {
    std::string file;  // or "--pod-max-pids"
    int line = 0;
  };
  std::map<std::string, Location> locations;  // by field, for fields that were set
};

void read_sizing(const Section& document, const std::string& file, PodSizingSettings& settings,
                 Diagnostics& warnings);
void apply_sizing_flags(const CommandLine& line, PodSizingSettings& settings,
                        Diagnostics& diagnostics);

// Writes all of them into the configuration. Beside a kubelet the values are the kubelet's to
// check: another version may accept more of them, and values that are not understood here count as
// unset.
void resolve_pod_sizing(const PodSizingSettings& settings, Config& config,
                        Diagnostics& diagnostics);

}  // namespace headroom::config
