// SPDX-License-Identifier: Apache-2.0
#include "report/metrics/exposition/host_families.h"

#include "report/metrics/exposition/exposition_text.h"

#include <utility>

namespace headroom::report {
namespace {

constexpr auto kNetwork = HostSource::kNetwork;
constexpr auto kProcesses = HostSource::kProcesses;
constexpr auto kFilesystems = HostSource::kFilesystems;
constexpr auto kCounter = prometheus::MetricType::Counter;

// `value` is the place in what network_values() and the functions below it return.
constexpr HostFamily kFamilies[] = {
    {"container_network_receive_bytes_total", "Bytes received.", kNetwork, 0, kCounter},
    {"container_network_receive_packets_total", "Packets received.", kNetwork, 1, kCounter},
    {"container_network_receive_errors_total", "Errors while receiving.", kNetwork, 2, kCounter},
    {"container_network_receive_packets_dropped_total", "Packets dropped while receiving.",
     kNetwork, 3, kCounter},
    {"container_network_transmit_bytes_total", "Bytes sent.", kNetwork, 4, kCounter},
    {"container_network_transmit_packets_total", "Packets sent.", kNetwork, 5, kCounter},
    {"container_network_transmit_errors_total", "Errors while sending.", kNetwork, 6, kCounter},
    {"container_network_transmit_packets_dropped_total", "Packets dropped while sending.", kNetwork,
     7, kCounter},
    {"container_processes", "Processes in the cgroup, without those of cgroups below it.",
     kProcesses, 0},
    {"container_file_descriptors", "Open file descriptors of these processes.", kProcesses, 1},
    {"container_fs_limit_bytes", "Size of the filesystem.", kFilesystems, 0},
    {"container_fs_usage_bytes", "Space in use on the filesystem.", kFilesystems, 1},
    {"container_fs_inodes_total", "Inodes of the filesystem.", kFilesystems, 2},
    {"container_fs_inodes_free", "Inodes that are free on the filesystem.", kFilesystems, 3},
};

std::optional<double> number(std::uint64_t value) {
  return static_cast<double>(value);
}

std::optional<double> number(const std::optional<std::uint64_t>& value) {
  return value ? number(*value) : std::nullopt;
}

std::string label(std::string_view name, std::string_view value) {
  std::string text;
  append_label(text, name, value);
  return text;
}

std::array<std::optional<double>, 8> network_values(const NetworkDevice& device) {
  const auto& [in, out] = std::pair(device.received, device.sent);
  return {number(in.bytes),  number(in.packets),  number(in.errors),  number(in.dropped),
          number(out.bytes), number(out.packets), number(out.errors), number(out.dropped)};
}

std::vector<HostSample> network_samples(const CgroupTable& table, const NetworkReader& reader,
                                        const HostSelection& selection) {
  std::vector<HostSample> samples;
  for (const NetworkRow& row : network_rows(table, reader, selection.is_pod_internal))
    for (const NetworkDevice& device : row.devices)
      samples.push_back({.record = row.record,
                         .extra_labels = label("interface", device.name),
                         .values = network_values(device)});
  return samples;
}

std::vector<HostSample> process_samples(const CgroupTable& table, const ProcessReader& reader,
                                        const HostSelection& selection) {
  std::vector<HostSample> samples;
  for (std::size_t i = 0; i < table.records.size(); ++i) {
    if (table.path(i).empty() || !selection.has_series(i)) continue;
    if (const auto counts = reader.of_cgroup(table.path(i)))
      samples.push_back(
          {.record = i, .values = {number(counts->processes), number(counts->descriptors)}});
  }
  return samples;
}

// As in cAdvisor: the filesystems are the root cgroup's.
std::vector<HostSample> filesystem_samples(const CgroupTable& table, const FilesystemSpaces& reader,
                                           const Observations& observations) {
  std::vector<HostSample> samples;
  for (std::size_t i = 0; i < table.records.size(); ++i) {
    if (table.records[i].parent_id != 0) continue;
    for (const FilesystemSpace& space : reader.all(observations))
      samples.push_back({.record = i,
                         .extra_labels = label("device", space.device),
                         .values = {number(space.capacity), number(space.used),
                                    number(space.inodes), number(space.inodes_free)}});
    break;
  }
  return samples;
}

}  // namespace

std::span<const HostFamily> host_families() {
  return kFamilies;
}

HostSamples::HostSamples(const CgroupTable& table, const HostReaders& readers,
                         const Observations& observations, const HostSelection& selection) {
  const auto samples = [this](HostSource source) -> std::vector<HostSample>& {
    return samples_[static_cast<std::size_t>(source)];
  };
  if (selection.is_wanted(kNetwork))
    samples(kNetwork) = network_samples(table, readers.network, selection);
  if (selection.is_wanted(kProcesses))
    samples(kProcesses) = process_samples(table, readers.processes, selection);
  if (selection.is_wanted(kFilesystems))
    samples(kFilesystems) = filesystem_samples(table, readers.filesystems, observations);
}

}  // namespace headroom::report
