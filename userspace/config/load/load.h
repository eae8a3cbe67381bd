// SPDX-License-Identifier: Apache-2.0
// load(): from a command line, and the file it names, to a Config or every complaint at once.
#pragma once

#include "config/config.h"
#include "config/flags/command_line.h"
#include "config/yaml/yaml.h"

#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include <tl/expected.hpp>

namespace headroom::config {

// Read where --config names no other. It may be absent then: every key has a default.
inline constexpr const char* kDefaultFile = "/etc/headroom/headroom.yaml";
// Where --config-dir names no directory, drop-ins are beside the file: headroom.yaml.d.
inline constexpr const char* kDropInSuffix = ".d";

// What was found on this host.
struct LoadContext {
  bool kubelet_runs = false;
  // Whether headroom.kubernetes.kubelet.configz counts: not where it alone is what is wrong.
  bool use_configz = true;
  // headroom.kubernetes.runDirectory of the running daemon, where the kubelet's configuration is
  // read from at a reload: a new one takes effect at a restart. Empty: the one that is loaded.
  std::filesystem::path run_dir{};
};

// What was understood, beside what was wrong.
struct LoadResult {
  Config config;
  Diagnostics diagnostics;
  // The kubelet's own configuration, as headroom-kube wrote it down, is part of it: which one,
  // in words that change with the file. "": it is not, or not yet.
  std::string configz;
  // Of what is accepted, but should be written otherwise, or is unknown; one line each.
  std::vector<std::string> warnings;
  std::vector<std::string> ignored_keys;  // those of ignored_kubelet_keys() that are set
};
// The LoadResult::configz that loading this file would give.
std::string configz_version(const std::filesystem::path& file);
LoadResult read(const CommandLine& line, const LoadContext& context = {});

// Returns the Config, or all errors if there is any.
tl::expected<Config, Diagnostics> load(const CommandLine& line);

// Prints one error per line.
void print(const Diagnostics& diagnostics, std::ostream& err);

// What --check-config does. The exit status: 0, or 2 with the complaints on `err`.
int check_config(const CommandLine& line, std::ostream& out, std::ostream& err);

}  // namespace headroom::config
