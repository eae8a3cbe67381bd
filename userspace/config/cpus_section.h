// SPDX-License-Identifier: Apache-2.0
// The settings of CPU pinning, from the file's keys and the kubelet's flags.
//
// What can only be judged together (the options and the policy they belong to) is judged when all
// has been told: settle_cpus().
#pragma once

#include "config/command_line.h"
#include "config/config.h"
#include "config/section.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace headroom::config {

// A map of options, all of it from one place.
struct OptionsTold {
  std::string file;  // or the flag
  int line = 0;
  std::vector<Word> words;
};

struct CpusTold {
  OptionsTold policy;   // only where it is
  OptionsTold options;  // cpuManagerPolicyOptions
  OptionsTold topology_policy;
  OptionsTold topology_options;
  OptionsTold mode;
  CpuOptionGates gates;  // featureGates
};

std::span<const std::string_view> headroom_cpus_keys();

// The kubelet's keys of the document, and headroom.cpus.
void read_cpus(const Section& document, const std::string& file, Config& config, CpusTold& told);
void read_headroom_cpus(const Section& headroom, const std::string& file, Config& config,
                        CpusTold& told);
void apply_cpu_flags(const CommandLine& line, Config& config, CpusTold& told,
                     Complaints& complaints);
void settle_cpus(const CpusTold& told, Config& config, Complaints& complaints);

}  // namespace headroom::config
