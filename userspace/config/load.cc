// SPDX-License-Identifier: Apache-2.0
#include "config/load.h"

#include "config/cpus_section.h"
#include "config/eviction_told.h"
#include "config/flags.h"
#include "config/headroom_section.h"
#include "config/kubelet_section.h"
#include "config/node_flags.h"
#include "config/read_file.h"
#include "config/reserve_flags.h"
#include "config/reserves_told.h"
#include "config/section.h"
#include "config/yaml.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

namespace headroom::config {
namespace {

// What is put together only when everything has been told.
struct Gathered {
  EvictionTold eviction;
  CpusTold cpus;
  ReservesTold reserves;
};

void read_document(const yaml::Node& document, const std::string& file, Config& config,
                   Gathered& gathered, Complaints& complaints) {
  if (!document.is_map()) {
    complaints.push_back(
        {file, document.line, "expected a KubeletConfiguration, found " + describe(document)});
    return;
  }
  const Section section(document, "", file, complaints);
  read_kubelet(section, file, config, gathered.eviction, gathered.reserves);
  read_cpus(section, file, config, gathered.cpus);
  if (const auto ours = section.map("headroom")) {
    read_headroom(*ours, file, config, gathered.reserves);
    read_headroom_cpus(*ours, file, config, gathered.cpus);
  }
}

void read_text(const std::string& text, const std::string& file, Config& config, Gathered& gathered,
               Complaints& complaints) {
  const std::size_t before = complaints.size();
  std::vector<yaml::Node> documents = yaml::parse(text, file, complaints);
  std::erase_if(documents, [](const yaml::Node& node) { return node.is_null(); });
  if (documents.empty()) {
    // Cut short by a syntax error, it is not empty.
    if (complaints.size() == before)
      complaints.push_back({file, 0, "expected a KubeletConfiguration, found an empty file"});
    return;
  }
  read_document(documents.front(), file, config, gathered, complaints);
  if (documents.size() > 1)
    complaints.push_back({file, documents[1].line, "expected one document, found another"});
}

void read_configured(const CommandLine& line, Config& config, Gathered& gathered,
                     Complaints& complaints) {
  const std::string file = line.config.empty() ? kDefaultFile : line.config.back();
  const auto text = read_file(file);
  if (text) {
    read_text(*text, file, config, gathered, complaints);
    return;
  }
  const bool may_be_absent = line.config.empty();
  if (!may_be_absent || text.error().code != ENOENT)
    complaints.push_back({file, 0, text.error().what});
}

// The file's in the order of its lines, then the flags' as they came.
void sort_by_place(Complaints& complaints) {
  const auto of_file = [](const Complaint& complaint) { return !complaint.file.starts_with("--"); };
  const auto flags = std::stable_partition(complaints.begin(), complaints.end(), of_file);
  std::stable_sort(complaints.begin(), flags,
                   [](const Complaint& a, const Complaint& b) { return a.line < b.line; });
}

}  // namespace

Heard read(const CommandLine& line) {
  Heard told;
  Gathered gathered;
  read_configured(line, told.config, gathered, told.complaints);
  apply_flags(line, told.config, gathered.eviction, told.complaints);
  apply_node_flags(line, told.config, told.complaints);
  apply_cpu_flags(line, told.config, gathered.cpus, told.complaints);
  apply_reserve_flags(line, gathered.reserves, told.complaints);
  const Enforcements enforcements{enforcements_told(gathered.eviction, told.complaints),
                                  gathered.eviction.enforce_node_allocatable};
  told.config.policy.thresholds =
      thresholds_told(gathered.eviction, enforcements.keys, told.complaints);
  if (told.config.memory_pressure)
    told.config.policy.thresholds.push_back(*told.config.memory_pressure);
  settle_reserves(gathered.reserves, enforcements, told.config, told.complaints);
  settle_cpus(gathered.cpus, told.config, told.complaints);
  sort_by_place(told.complaints);
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
