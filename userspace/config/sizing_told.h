// SPDX-License-Identifier: Apache-2.0
// SizingTold: what decides about the cgroups of every pod, as the file and the flags tell it.
#pragma once

#include "config/command_line.h"
#include "config/config.h"
#include "config/section.h"
#include "judge/allocatable/pod_sizing.h"

#include <map>
#include <string>

namespace headroom::config {

struct SizingTold {
  PodSizingTold values;
  struct Place {
    std::string file;  // or "--pod-max-pids"
    int line = 0;
  };
  std::map<std::string, Place> places;  // by field, of those that were told
};

void read_sizing(const Section& document, const std::string& file, SizingTold& told);
void apply_sizing_flags(const CommandLine& line, SizingTold& told, Complaints& complaints);

// Into the configuration, together. Beside a kubelet the values are its own to judge: one of
// another version may know more of them, and what we make nothing of is as if it were not told.
void settle_sizing(const SizingTold& told, Config& config, Complaints& complaints);

}  // namespace headroom::config
