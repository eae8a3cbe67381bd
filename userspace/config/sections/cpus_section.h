// SPDX-License-Identifier: Apache-2.0
// The settings of CPU pinning, from the file's keys and the kubelet's flags.
//
// What depends on several settings (the options and the policy they belong to) is checked when all
// have been read: resolve_cpu_settings().
#pragma once

#include "config/config.h"
#include "config/flags/command_line.h"
#include "config/yaml/section.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace headroom::config {

// A map of options, all of it from one place.
struct LocatedOptions {
  std::string file;  // or the flag
  int line = 0;
  std::vector<LocatedText> strings;
};

struct CpusSettings {
  LocatedOptions policy;   // only where it is
  LocatedOptions options;  // cpuManagerPolicyOptions
  LocatedOptions topology_policy;
  LocatedOptions topology_options;
  LocatedOptions mode;
  CpuOptionGates gates;  // featureGates
};

std::span<const std::string_view> headroom_cpus_keys();

// The kubelet's keys of the document, and headroom.cpus.
void read_cpus(const Section& document, const std::string& file, Config& config,
               CpusSettings& settings);
void read_headroom_cpus(const Section& headroom, const std::string& file, Config& config,
                        CpusSettings& settings);
void apply_cpu_flags(const CommandLine& line, Config& config, CpusSettings& settings,
                     Diagnostics& diagnostics);
void resolve_cpu_settings(const CpusSettings& settings, Config& config, Diagnostics& diagnostics);

}  // namespace headroom::config
