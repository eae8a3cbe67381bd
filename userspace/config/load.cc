// SPDX-License-Identifier: Apache-2.0
#include "config/load.h"

#include "config/beside_kubelet.h"
#include "config/cpus_section.h"
#include "config/eviction_told.h"
#include "config/flags.h"
#include "config/headroom_section.h"
#include "config/kubelet_section.h"
#include "config/kubernetes_section.h"
#include "config/node_flags.h"
#include "config/read_file.h"
#include "config/reserve_flags.h"
#include "config/reserves_told.h"
#include "config/section.h"
#include "config/settings_told.h"
#include "config/sizing_told.h"
#include "config/sources.h"

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
struct Gathered {
  EvictionTold eviction;
  CpusTold cpus;
  ReservesTold reserves;
  SizingTold sizing;
};

// The file and its drop-ins, as far as they can be read.
void read_file_into(const std::filesystem::path& file, bool drop_in, Sources& sources,
                    Complaints& complaints) {
  const auto text = read_file(file);
  if (text)
    sources.add(file, *text, drop_in, complaints);
  else
    complaints.push_back({file, 0, text.error().what});
}

// `base`: what all the others are merged into; "": nothing.
Sources read_sources(const CommandLine& line, const std::filesystem::path& base,
                     Complaints& complaints) {
  Sources sources;
  if (!base.empty()) read_file_into(base, true, sources, complaints);
  const std::string file = line.config.empty() ? kDefaultFile : line.config.back();
  const bool there = !line.config.empty() || ::access(file.c_str(), F_OK) == 0 || errno != ENOENT;
  if (there) read_file_into(file, false, sources, complaints);
  const std::string directory =
      line.config_dir.empty() ? file + kDropInEnding : line.config_dir.back();
  const auto names = drop_ins(directory);
  if (!names) {
    if (!line.config_dir.empty() || names.error().code != ENOENT)
      complaints.push_back({directory, 0, names.error().what});
    return sources;
  }
  for (const std::filesystem::path& name : *names)
    read_file_into(name, true, sources, complaints);
  return sources;
}

// What headroom-kube writes down of the kubelet's own; "": not wanted.
std::filesystem::path configz_of(const Sources& sources) {
  if (!sources.document().is_map()) return {};
  Config told;
  Complaints ignored;  // they come up again
  const std::string& file = sources.files().front();
  const Section section(sources.document(), "", file, ignored);
  if (const auto ours = section.map("headroom")) read_kubernetes(*ours, told);
  if (!told.kubernetes.kubelet.configz) return {};
  return told.kubernetes.configz_file();
}

void read_document(const Sources& sources, Config& config, Gathered& gathered,
                   Complaints& complaints) {
  if (!sources.document().is_map()) return;  // absent, or complained of
  const std::string& file = sources.files().front();
  const Section section(sources.document(), "", file, complaints);
  read_kubelet(section, file, config, gathered.eviction, gathered.reserves, gathered.sizing);
  read_cpus(section, file, config, gathered.cpus);
  if (const auto ours = section.map("headroom")) {
    read_headroom(*ours, file, config, gathered.reserves);
    read_headroom_cpus(*ours, file, config, gathered.cpus);
  }
}

// The file's in the order of its lines, then the flags' as they came.
void sort_by_place(Complaints& complaints) {
  const auto of_file = [](const Complaint& complaint) { return !complaint.file.starts_with("--"); };
  const auto flags = std::stable_partition(complaints.begin(), complaints.end(), of_file);
  std::stable_sort(complaints.begin(), flags,
                   [](const Complaint& a, const Complaint& b) { return a.line < b.line; });
}

}  // namespace

// Who writes it makes a new inode.
std::string edition_of(const std::filesystem::path& file) {
  struct stat info {};
  if (file.empty() || ::stat(file.c_str(), &info) != 0) return "";
  return std::to_string(info.st_ino) + " " + std::to_string(info.st_ctim.tv_sec) + "." +
         std::to_string(info.st_ctim.tv_nsec);
}

Heard read(const CommandLine& line, const Surroundings& surroundings) {
  Heard told;
  Gathered gathered;
  Sources sources = read_sources(line, {}, told.complaints);
  const auto base = surroundings.heed_configz ? configz_of(sources) : std::filesystem::path();
  told.configz = edition_of(base);
  if (!told.configz.empty()) {
    told.complaints.clear();  // they come up again
    sources = read_sources(line, base, told.complaints);
  }
  read_document(sources, told.config, gathered, told.complaints);
  apply_flags(line, told.config, gathered.eviction, told.complaints);
  apply_node_flags(line, told.config, told.complaints);
  apply_cpu_flags(line, told.config, gathered.cpus, told.complaints);
  apply_reserve_flags(line, gathered.reserves, told.complaints);
  apply_sizing_flags(line, gathered.sizing, told.complaints);
  settle_beside_kubelet(sources.document(), sources.files().empty() ? "" : sources.files().front(),
                        surroundings.kubelet_runs, told.config, told.complaints);
  const Enforcements enforcements{enforcements_told(gathered.eviction, told.complaints),
                                  gathered.eviction.enforce_node_allocatable};
  told.config.policy.thresholds =
      thresholds_told(gathered.eviction, enforcements.keys, told.complaints);
  if (told.config.memory_pressure)
    told.config.policy.thresholds.push_back(*told.config.memory_pressure);
  settle_reserves(gathered.reserves, enforcements, told.config, told.complaints);
  settle_sizing(gathered.sizing, told.config, told.complaints);
  settle_cpus(gathered.cpus, told.config, told.complaints);
  told.config.settings =
      settings_told(sources.document(), line, gathered.eviction, gathered.reserves,
                    [&](int at) { return sources.place(at); });
  note_beside_kubelet(sources.document(), told.config, told.config.settings);
  sort_by_place(told.complaints);
  for (Complaint& complaint : told.complaints)
    complaint = sources.located(std::move(complaint));
  return told;
}

tl::expected<Config, Complaints> load(const CommandLine& line) {
  Heard told = read(line);
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
