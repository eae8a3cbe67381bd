// SPDX-License-Identifier: Apache-2.0
#include "report/host/network_counters.h"

#include "report/view/pod_index.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <iterator>
#include <unordered_map>
#include <utility>

namespace headroom::report {
namespace {

constexpr auto kIgnoredPrefixes = std::to_array<std::string_view>({"lo", "veth", "docker"});

std::string contents(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The file of the devices is another one in each network namespace (proc_create_net()), and what
// ns/net says needs CAP_SYS_PTRACE.
NetworkFile file_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {};
  return {.device = status.st_dev, .inode = status.st_ino};
}

// The next number of a line; absent: there is none.
std::optional<std::uint64_t> next_number(std::string_view& rest) {
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (error != std::errc()) return std::nullopt;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  return number;
}

// "  eth0:   BYTES PACKETS ERRS DROP FIFO FRAME COMPRESSED MULTICAST   BYTES PACKETS ERRS DROP ..."
std::optional<NetworkDevice> parse_device(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view name = line.substr(0, colon);
  name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
  std::string_view rest = line.substr(colon + 1);
  std::array<std::uint64_t, 12> numbers{};
  for (std::uint64_t& number : numbers) {
    const auto next = next_number(rest);
    if (!next) return std::nullopt;
    number = *next;
  }
  const auto counts = [&numbers](std::size_t at) {
    return NetworkCounts{numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3]};
  };
  constexpr std::size_t kReceived = 0, kSent = 8;
  return NetworkDevice{std::string(name), counts(kReceived), counts(kSent)};
}

bool is_ignored(std::string_view name) {
  return std::ranges::any_of(kIgnoredPrefixes,
                             [name](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace

NetworkDevices parse_network_devices(std::string_view text) {
  NetworkDevices devices;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (auto device = parse_device(text.substr(0, end)); device && !is_ignored(device->name))
      devices.push_back(std::move(*device));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return devices;
}

NetworkReader::NetworkReader(std::string cgroup_root, std::string proc)
    : cgroup_root_(std::move(cgroup_root)),
      proc_(std::move(proc)),
      own_devices_(file_of(proc_ + "/self/net/dev")) {}

NetworkDevices NetworkReader::of_node() const {
  return parse_network_devices(contents(proc_ + "/self/net/dev"));
}

std::optional<NetworkDevices> NetworkReader::of_cgroup(std::string_view path) const {
  std::ifstream processes(cgroup_root_ + std::string(path) + "/cgroup.procs");
  long process = 0;
  if (!(processes >> process) || process <= 0) return std::nullopt;
  const std::string file = proc_ + '/' + std::to_string(process) + "/net/dev";
  const NetworkFile devices = file_of(file);
  if (devices == NetworkFile{}) return std::nullopt;  // it has exited
  if (devices == own_devices_) return NetworkDevices{};
  return parse_network_devices(contents(file));
}

std::vector<NetworkRow> network_rows(const CgroupTable& table, const NetworkReader& reader,
                                     const std::function<bool(std::size_t)>& is_preferred) {
  std::vector<NetworkRow> rows;
  const PodIndex index(table);
  std::unordered_map<const PodRow*, std::vector<std::size_t>> candidates;
  for (std::size_t i = 0; i < table.records.size(); ++i) {
    const hr_record& record = table.records[i];
    if (record.parent_id == 0)
      if (auto devices = reader.of_node(); !devices.empty())
        rows.push_back({.record = i, .devices = std::move(devices)});
    const PodRow* const pod = index.pod_of(record);
    if (!pod || record.populated == 0 || table.path(i).empty()) continue;
    auto& places = candidates[pod];
    places.insert(is_preferred(i) ? places.begin() : places.end(), i);
  }
  for (const PodRow& pod : table.pods)
    for (const std::size_t record : candidates[&pod])
      if (auto devices = reader.of_cgroup(table.path(record))) {
        if (!devices->empty()) rows.push_back({record, &pod, std::move(*devices)});
        break;
      }
  return rows;
}

}  // namespace headroom::report
