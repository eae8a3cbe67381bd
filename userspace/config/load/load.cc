// SPDX-License-Identifier: Apache-2.0
#include "config/load/load.h"

#include "config/kubelet_keys.h"
#include "config/load/apply_flags.h"
#include "config/load/drop_ins.h"
#include "config/load/effective_settings.h"
#include "config/load/kubelet_coexistence.h"
#include "config/load/node_flags.h"
#include "config/load/reserve_flags.h"
#include "config/sections/cpus_section.h"
#include "config/sections/eviction_settings.h"
#include "config/sections/headroom_section.h"
#include "config/sections/kubelet_section.h"
#include "config/sections/kubernetes_section.h"
#include "config/sections/pod_sizing_settings.h"
#include "config/sections/reserved_settings.h"
#include "config/yaml/read_file.h"
#include "config/yaml/section.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string>
#include <utility>

namespace headroom::config {
namespace {

// What can be put together only after everything was read.
struct ParsedSettings {
  EvictionSettings eviction;
  CpusSettings cpus;
  ReservedSettings reserves;
  PodSizingSettings sizing;
};

// The file and its drop-ins, as far as they can be read.
void add_document(const std::filesystem::path& file, bool drop_in, MergedConfig& merged,
                  Diagnostics& diagnostics) {
  const auto text = read_file(file);
  if (text)
    merged.add(file, *text, drop_in, diagnostics);
  else
    diagnostics.push_back({file, 0, text.error().what});
}

// `base`: what all the others are merged into; "": nothing.
MergedConfig read_config_files(const CommandLine& line, const std::filesystem::path& base,
                               Diagnostics& diagnostics) {
  MergedConfig merged;
  if (!base.empty()) add_document(base, true, merged, diagnostics);
  const std::string file = line.config.empty() ? kDefaultFile : line.config.back();
  const bool there = !line.config.empty() || ::access(file.c_str(), F_OK) == 0 || errno != ENOENT;
  if (there) add_document(file, false, merged, diagnostics);
  const std::string directory =
      line.config_dir.empty() ? file + kDropInSuffix : line.config_dir.back();
  const auto names = drop_ins(directory);
  if (!names) {
    if (!line.config_dir.empty() || names.error().code != ENOENT)
      diagnostics.push_back({directory, 0, names.error().what});
    return merged;
  }
  for (const std::filesystem::path& name : *names)
    add_document(name, true, merged, diagnostics);
  return merged;
}

// What headroom-kube writes down of the kubelet's own; "": not wanted.
std::filesystem::path find_configz_file(const MergedConfig& merged,
                                        const std::filesystem::path& run_dir) {
  if (!merged.document().is_map()) return {};
  Config result;
  Diagnostics ignored;  // they come up again
  const std::string& file = merged.files().front();
  const Section section(merged.document(), "", file, ignored);
  if (const auto headroom_section = section.map("headroom"))
    read_kubernetes(*headroom_section, result);
  if (!result.kubernetes.kubelet.configz) return {};
  if (!run_dir.empty()) result.kubernetes.run_dir = run_dir;
  return result.kubernetes.configz_file();
}

void read_document(const MergedConfig& merged, LoadResult& result, ParsedSettings& parsed) {
  if (!merged.document().is_map()) return;  // absent, or complained of
  Config& config = result.config;
  Diagnostics& diagnostics = result.diagnostics;
  Diagnostics warnings;
  const std::string& file = merged.files().front();
  const Section section(merged.document(), "", file, diagnostics);
  read_kubelet(section, file, config, parsed.eviction, parsed.reserves, parsed.sizing, warnings);
  read_cpus(section, file, config, parsed.cpus);
  if (const auto headroom_section = section.map("headroom")) {
    read_headroom(*headroom_section, file, config, parsed.reserves);
    read_headroom_cpus(*headroom_section, file, config, parsed.cpus);
  }
  for (Diagnostic& warning : warnings)
    result.warnings.push_back(to_string(merged.with_file_and_line(std::move(warning))));
  for (const IgnoredKubeletKey& ignored : ignored_kubelet_keys())
    if (section.has(ignored.key)) result.ignored_keys.emplace_back(ignored.key);
}

// The file's in the order of its lines, then the flags' as they came.
void sort_by_line(Diagnostics& diagnostics) {
  const auto of_file = [](const Diagnostic& diagnostic) {
    return !diagnostic.file.starts_with("--");
  };
  const auto flags = std::stable_partition(diagnostics.begin(), diagnostics.end(), of_file);
  std::stable_sort(diagnostics.begin(), flags,
                   [](const Diagnostic& a, const Diagnostic& b) { return a.line < b.line; });
}

}  // namespace

// Writing it creates a new inode.
std::string configz_version(const std::filesystem::path& file) {
  struct stat info {};
  if (file.empty() || ::stat(file.c_str(), &info) != 0) return "";
  return std::to_string(info.st_ino) + " " + std::to_string(info.st_ctim.tv_sec) + "." +
         std::to_string(info.st_ctim.tv_nsec);
}

LoadResult read(const CommandLine& line, const LoadContext& context) {
  LoadResult result;
  ParsedSettings parsed;
  MergedConfig merged = read_config_files(line, {}, result.diagnostics);
  const auto base =
      context.use_configz ? find_configz_file(merged, context.run_dir) : std::filesystem::path();
  result.configz = configz_version(base);
  if (!result.configz.empty()) {
    result.diagnostics.clear();  // they come up again
    merged = read_config_files(line, base, result.diagnostics);
  }
  result.warnings = merged.warnings();
  read_document(merged, result, parsed);
  apply_flags(line, result.config, parsed.eviction, result.diagnostics);
  apply_node_flags(line, result.config, result.diagnostics);
  apply_cpu_flags(line, result.config, parsed.cpus, result.diagnostics);
  apply_reserve_flags(line, parsed.reserves, result.diagnostics);
  apply_sizing_flags(line, parsed.sizing, result.diagnostics);
  apply_kubelet_coexistence(merged.document(), merged.files().empty() ? "" : merged.files().front(),
                            context.kubelet_runs, result.config, result.diagnostics);
  const Enforcements enforcements{collect_enforcements(parsed.eviction, result.diagnostics),
                                  parsed.eviction.enforce_node_allocatable};
  result.config.policy.thresholds =
      build_eviction_thresholds(parsed.eviction, enforcements.keys, result.diagnostics);
  if (result.config.memory_pressure)
    result.config.policy.thresholds.push_back(*result.config.memory_pressure);
  resolve_reserved_settings(parsed.reserves, enforcements, result.config, result.diagnostics);
  resolve_pod_sizing(parsed.sizing, result.config, result.diagnostics);
  resolve_cpu_settings(parsed.cpus, result.config, result.diagnostics);
  result.config.settings =
      effective_settings(merged.document(), line, parsed.eviction, parsed.reserves,
                         [&](int at) { return merged.location(at); });
  record_kubelet_coexistence(merged.document(), result.config, result.config.settings);
  sort_by_line(result.diagnostics);
  for (Diagnostic& diagnostic : result.diagnostics)
    diagnostic = merged.with_file_and_line(std::move(diagnostic));
  return result;
}

tl::expected<Config, Diagnostics> load(const CommandLine& line) {
  LoadResult result = read(line);
  if (result.diagnostics.empty()) return std::move(result.config);
  return tl::make_unexpected(std::move(result.diagnostics));
}

void print(const Diagnostics& diagnostics, std::ostream& err) {
  for (const Diagnostic& diagnostic : diagnostics)
    err << to_string(diagnostic) << '\n';
}

int check_config(const CommandLine& line, std::ostream& out, std::ostream& err) {
  const LoadResult result = read(line);
  for (const std::string& warning : result.warnings)
    err << warning << '\n';
  print(result.diagnostics, err);
  if (!result.diagnostics.empty()) return 2;
  out << "the configuration is good\n";
  return 0;
}

}  // namespace headroom::config
