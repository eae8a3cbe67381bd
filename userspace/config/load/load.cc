// SPDX-License-Identifier: Apache-2.0
#include "config/load/load.h"

#include "config/config.h"
#include "config/flags/command_line.h"
#include "config/kubelet_keys.h"
#include "config/load/drop_ins.h"
#include "config/load/effective_settings.h"
#include "config/sections/section_settings.h"
#include "config/sections/sections.h"
#include "config/yaml/section.h"
#include "config/yaml/yaml.h"
#include "judge/admission/taints.h"
#include "judge/resources/go_duration.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

namespace headroom::config {
namespace {

// The kubelet's flags for what is reserved and where, put in place of what the file says.

void apply_reserve_flags(const CommandLine& line, ReservedSettings& settings,
                         Diagnostics& diagnostics) {
  apply_map_flag(line.kube_reserved, "--kube-reserved", "name=amount", settings.kube_reserved,
                 diagnostics);
  apply_map_flag(line.system_reserved, "--system-reserved", "name=amount", settings.system_reserved,
                 diagnostics);
  apply_map_flag(line.qos_reserved, "--qos-reserved", "name=amount", settings.qos_reserved,
                 diagnostics);
  apply_string_flag(line.kube_reserved_cgroup, "--kube-reserved-cgroup",
                    settings.kube_reserved_cgroup);
  apply_string_flag(line.system_reserved_cgroup, "--system-reserved-cgroup",
                    settings.system_reserved_cgroup);
  apply_string_flag(line.reserved_cpus, "--reserved-cpus", settings.reserved_cpus);
  apply_string_flag(line.cgroup_root, "--cgroup-root", settings.cgroup_root);
  apply_string_flag(line.cgroup_driver, "--cgroup-driver", settings.cgroup_driver);
  apply_bool_flag(line.cgroups_per_qos, "--cgroups-per-qos", settings.cgroups_per_qos, diagnostics);
  apply_bool_flag(line.ignore_eviction_threshold, "--experimental-allocatable-ignore-eviction",
                  settings.ignore_eviction, diagnostics);
}

// The kubelet's flags of the node as pods are to see it: over what the file says.

const std::string kTaints = "--register-with-taints";
const std::string kLabels = "--node-labels";

void apply_taint_flag(const std::string& text, std::vector<Taint>& taints,
                      Diagnostics& diagnostics) {
  const auto add_error = [&](std::string what) {
    diagnostics.push_back({kTaints, 0, std::move(what)});
  };
  const auto edit = parse_taint_edit(text);
  if (!edit) return add_error(edit.error().what);
  if (edit->removes) return add_error("\"" + text + "\": there is nothing to remove yet");
  const Taint taint{edit->key, edit->value, *edit->effect};
  const auto duplicate = std::find_if(taints.begin(), taints.end(), [&](const Taint& other) {
    return other.key == taint.key && other.effect == taint.effect;
  });
  if (duplicate != taints.end())
    return add_error("\"" + text + "\": there is " + to_string(*duplicate) + " already");
  taints.push_back(taint);
}

// If the flag is repeated, only the last one counts.
void apply_taint_flags(const CommandLine& line, std::vector<Taint>& taints,
                       Diagnostics& diagnostics) {
  if (line.register_with_taints.empty()) return;
  std::optional<LocatedValue> configured;
  apply_list_flag({line.register_with_taints.back()}, kTaints, configured);
  taints.clear();
  for (const LocatedText& word : configured->strings)
    apply_taint_flag(word.text, taints, diagnostics);
}

void apply_labels(const CommandLine& line, Labels& labels, Diagnostics& diagnostics) {
  std::optional<LocatedValue> configured;
  apply_map_flag(line.node_labels, kLabels, "key=value", configured, diagnostics);
  if (!configured) return;
  labels.clear();
  for (const LocatedText& word : configured->strings) {
    // Labels and taints are spelled by the same rules.
    const std::string what = taint_error({word.key, word.text, TaintEffect::kNoSchedule});
    if (!what.empty()) diagnostics.push_back({kLabels, 0, what});
    labels[word.key] = word.text;
  }
}

void apply_node_flags(const CommandLine& line, Config& config, Diagnostics& diagnostics) {
  apply_taint_flags(line, config.taints, diagnostics);
  apply_labels(line, config.node_labels, diagnostics);
  if (!line.hostname_override.empty()) config.node_name = line.hostname_override.back();
  if (const auto limit = parse_count_flag(line.max_pods, "--max-pods", diagnostics))
    config.max_pods = *limit;
  if (const auto limit = parse_count_flag(line.pods_per_core, "--pods-per-core", diagnostics))
    config.pods_per_core = *limit;
}

// Parses the flags' values, which replace those of the file.

void apply_max_grace(const CommandLine& line, Policy& policy, Diagnostics& diagnostics) {
  if (line.eviction_max_pod_grace_period.empty()) return;
  const std::string& text = line.eviction_max_pod_grace_period.back();
  std::int32_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error == std::errc() && end == text.data() + text.size())
    policy.max_pod_grace = std::chrono::seconds(seconds);
  else
    diagnostics.push_back({"--eviction-max-pod-grace-period", 0,
                           "expected a whole number of seconds (32 bits), found \"" + text + "\""});
}

void apply_transition(const CommandLine& line, Policy& policy, Diagnostics& diagnostics) {
  if (line.eviction_pressure_transition_period.empty()) return;
  const auto period = parse_go_duration(line.eviction_pressure_transition_period.back());
  const auto add_error = [&](std::string what) {
    diagnostics.push_back({"--eviction-pressure-transition-period", 0, std::move(what)});
  };
  if (!period)
    add_error(period.error().what);
  else if (*period < Duration::zero())
    add_error("must not be negative");
  else if (*period == Duration::zero())
    policy.pressure_transition = Policy{}.pressure_transition;  // zero is unset, as in the file
  else
    policy.pressure_transition = *period;
}

void apply_headroom_flags(const CommandLine& line, Config& config, Diagnostics& diagnostics) {
  if (!line.mode.empty()) {
    if (const auto mode = parse_mode(line.mode.back()))
      config.policy.mode = *mode;
    else
      diagnostics.push_back(
          {"--mode", 0, "expected observe or enforce, found \"" + line.mode.back() + "\""});
  }
  for (const auto& [flag, values, address] :
       {std::tuple{"--listen", &line.listen, &config.listen},
        std::tuple{"--metrics-listen", &line.metrics_listen, &config.kubernetes.metrics.listen}}) {
    if (values->empty()) continue;
    if (const auto what = listen_error(values->back()))
      diagnostics.push_back({flag, 0, *what});
    else
      *address = values->back();
  }
  if (config.listen.empty() && !config.kubernetes.metrics.listen.empty())
    diagnostics.push_back({"headroom.kubernetes.metrics.listen", 0,
                           "needs headroom.listen: headroomd's metrics are fetched from there"});
  if (config.listen.empty() && config.kubernetes.scheduling.needs_api())
    diagnostics.push_back({"headroom.kubernetes.scheduling", 0,
                           "needs headroom.listen: headroomd's readings are fetched from there"});
}

void apply_flags(const CommandLine& line, Config& config, EvictionSettings& eviction,
                 Diagnostics& diagnostics) {
  apply_map_flag(line.eviction_hard, "--eviction-hard", "signal<value", eviction.hard, diagnostics);
  apply_map_flag(line.eviction_soft, "--eviction-soft", "signal<value", eviction.soft, diagnostics);
  apply_map_flag(line.eviction_soft_grace_period, "--eviction-soft-grace-period", "signal=value",
                 eviction.soft_grace, diagnostics);
  apply_map_flag(line.eviction_minimum_reclaim, "--eviction-minimum-reclaim", "signal=value",
                 eviction.min_reclaim, diagnostics);
  apply_list_flag(line.enforce_node_allocatable, "--enforce-node-allocatable",
                  eviction.enforce_node_allocatable);
  apply_max_grace(line, config.policy, diagnostics);
  apply_transition(line, config.policy, diagnostics);
  if (const auto isolation = parse_bool_flag(line.local_storage_isolation,
                                             "--local-storage-capacity-isolation", diagnostics))
    config.policy.local_storage_isolation = *isolation;
  parse_bool_flag(line.kernel_memcg_notification, "--kernel-memcg-notification", diagnostics);
  apply_headroom_flags(line, config, diagnostics);
}

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
  read_memory_manager(section, file, config, parsed.cpus);
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
  apply_memory_manager_flags(line, result.config, parsed.cpus, result.diagnostics);
  apply_reserve_flags(line, parsed.reserves, result.diagnostics);
  apply_sizing_flags(line, parsed.sizing, result.diagnostics);
  apply_kubelet_coexistence(merged.document(), merged.files().empty() ? "" : merged.files().front(),
                            context.kubelet_runs, result.config, result.diagnostics);
  const Enforcements enforcements{collect_enforcements(parsed.eviction, result.diagnostics),
                                  parsed.eviction.enforce_node_allocatable};
  result.config.policy.thresholds =
      build_eviction_thresholds(parsed.eviction, enforcements.keys, result.diagnostics);
  if (auto threshold =
          kernel_mem_threshold(result.config.kernel_mem_available, result.config.policy.thresholds))
    result.config.policy.thresholds.push_back(std::move(*threshold));
  for (const Threshold& threshold : result.config.pressure)
    result.config.policy.thresholds.push_back(threshold);
  resolve_reserved_settings(parsed.reserves, enforcements, result.config, result.diagnostics);
  resolve_pod_sizing(parsed.sizing, result.config, result.diagnostics);
  resolve_cpu_settings(parsed.cpus, result.config, result.diagnostics);
  resolve_memory_manager(parsed.cpus, result.config, result.diagnostics);
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
