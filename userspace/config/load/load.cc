// SPDX-License-Identifier: Apache-2.0
#include "config/load/load.h"

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

// What is put together only when everything has been told.
struct ParsedSettings {
  EvictionSettings eviction;
  CpusSettings cpus;
  ReservedSettings reserves;
  PodSizingSettings sizing;
};

// The file and its drop-ins, as far as they can be read.
void read_file_into(const std::filesystem::path& file, bool drop_in, MergedConfig& merged,
                    Complaints& complaints) {
  const auto text = read_file(file);
  if (text)
    merged.add(file, *text, drop_in, complaints);
  else
    complaints.push_back({file, 0, text.error().what});
}

// `base`: what all the others are merged into; "": nothing.
MergedConfig read_config_files(const CommandLine& line, const std::filesystem::path& base,
                               Complaints& complaints) {
  MergedConfig merged;
  if (!base.empty()) read_file_into(base, true, merged, complaints);
  const std::string file = line.config.empty() ? kDefaultFile : line.config.back();
  const bool there = !line.config.empty() || ::access(file.c_str(), F_OK) == 0 || errno != ENOENT;
  if (there) read_file_into(file, false, merged, complaints);
  const std::string directory =
      line.config_dir.empty() ? file + kDropInSuffix : line.config_dir.back();
  const auto names = drop_ins(directory);
  if (!names) {
    if (!line.config_dir.empty() || names.error().code != ENOENT)
      complaints.push_back({directory, 0, names.error().what});
    return merged;
  }
  for (const std::filesystem::path& name : *names)
    read_file_into(name, true, merged, complaints);
  return merged;
}

// What headroom-kube writes down of the kubelet's own; "": not wanted.
std::filesystem::path find_configz_file(const MergedConfig& merged) {
  if (!merged.document().is_map()) return {};
  Config told;
  Complaints ignored;  // they come up again
  const std::string& file = merged.files().front();
  const Section section(merged.document(), "", file, ignored);
  if (const auto ours = section.map("headroom")) read_kubernetes(*ours, told);
  if (!told.kubernetes.kubelet.configz) return {};
  return told.kubernetes.configz_file();
}

void read_document(const MergedConfig& merged, Config& config, ParsedSettings& parsed,
                   Complaints& complaints) {
  if (!merged.document().is_map()) return;  // absent, or complained of
  const std::string& file = merged.files().front();
  const Section section(merged.document(), "", file, complaints);
  read_kubelet(section, file, config, parsed.eviction, parsed.reserves, parsed.sizing);
  read_cpus(section, file, config, parsed.cpus);
  if (const auto ours = section.map("headroom")) {
    read_headroom(*ours, file, config, parsed.reserves);
    read_headroom_cpus(*ours, file, config, parsed.cpus);
  }
}

// The file's in the order of its lines, then the flags' as they came.
void sort_by_line(Complaints& complaints) {
  const auto of_file = [](const Complaint& complaint) { return !complaint.file.starts_with("--"); };
  const auto flags = std::stable_partition(complaints.begin(), complaints.end(), of_file);
  std::stable_sort(complaints.begin(), flags,
                   [](const Complaint& a, const Complaint& b) { return a.line < b.line; });
}

}  // namespace

// Who writes it makes a new inode.
std::string configz_version(const std::filesystem::path& file) {
  struct stat info {};
  if (file.empty() || ::stat(file.c_str(), &info) != 0) return "";
  return std::to_string(info.st_ino) + " " + std::to_string(info.st_ctim.tv_sec) + "." +
         std::to_string(info.st_ctim.tv_nsec);
}

LoadResult read(const CommandLine& line, const LoadContext& surroundings) {
  LoadResult told;
  ParsedSettings parsed;
  MergedConfig merged = read_config_files(line, {}, told.complaints);
  const auto base = surroundings.use_configz ? find_configz_file(merged) : std::filesystem::path();
  told.configz = configz_version(base);
  if (!told.configz.empty()) {
    told.complaints.clear();  // they come up again
    merged = read_config_files(line, base, told.complaints);
  }
  read_document(merged, told.config, parsed, told.complaints);
  apply_flags(line, told.config, parsed.eviction, told.complaints);
  apply_node_flags(line, told.config, told.complaints);
  apply_cpu_flags(line, told.config, parsed.cpus, told.complaints);
  apply_reserve_flags(line, parsed.reserves, told.complaints);
  apply_sizing_flags(line, parsed.sizing, told.complaints);
  apply_kubelet_coexistence(merged.document(), merged.files().empty() ? "" : merged.files().front(),
                            surroundings.kubelet_runs, told.config, told.complaints);
  const Enforcements enforcements{collect_enforcements(parsed.eviction, told.complaints),
                                  parsed.eviction.enforce_node_allocatable};
  told.config.policy.thresholds =
      build_eviction_thresholds(parsed.eviction, enforcements.keys, told.complaints);
  if (told.config.memory_pressure)
    told.config.policy.thresholds.push_back(*told.config.memory_pressure);
  resolve_reserved_settings(parsed.reserves, enforcements, told.config, told.complaints);
  resolve_pod_sizing(parsed.sizing, told.config, told.complaints);
  resolve_cpu_settings(parsed.cpus, told.config, told.complaints);
  told.config.settings =
      effective_settings(merged.document(), line, parsed.eviction, parsed.reserves,
                         [&](int at) { return merged.location(at); });
  record_kubelet_coexistence(merged.document(), told.config, told.config.settings);
  sort_by_line(told.complaints);
  for (Complaint& complaint : told.complaints)
    complaint = merged.with_file_and_line(std::move(complaint));
  return told;
}

tl::expected<Config, Complaints> load(const CommandLine& line) {
  LoadResult told = read(line);
  if (told.complaints.empty()) return std::move(told.config);
  return tl::make_unexpected(std::move(told.complaints));
}

void print(const Complaints& complaints, std::ostream& err) {
  for (const Complaint& complaint : complaints)
    err << to_string(complaint) << '\n';
}

int check_config(const CommandLine& line, std::ostream& out, std::ostream& err) {
  const auto config = load(line);
  if (!config) {
    print(config.error(), err);
    return 2;
  }
  out << "the configuration is good\n";
  return 0;
}

}  // namespace headroom::config
