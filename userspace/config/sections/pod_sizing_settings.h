// SPDX-License-Identifier: Apache-2.0
// SizingTold: what decides about the cgroups of every pod, as the file and the flags tell it.
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
  std::map<std::string, Location> locations;  // by field, of those that were told
};

void read_sizing(const Section& document, const std::string& file, PodSizingSettings& settings);
void apply_sizing_flags(const CommandLine& line, PodSizingSettings& settings,
                        Diagnostics& diagnostics);

// Into the configuration, together. Beside a kubelet the values are its own to judge: one of
// another version may know more of them, and what we make nothing of is as if it were not told.
void resolve_pod_sizing(const PodSizingSettings& settings, Config& config,
                        Diagnostics& diagnostics);

}  // namespace headroom::config
