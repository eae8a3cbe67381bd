// SPDX-License-Identifier: Apache-2.0
#include "observe/node/cpu_topology.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <map>
#include <string_view>
#include <utility>

namespace headroom::observe {
namespace {

namespace fs = std::filesystem;

// Without its newline and blanks; absent: no such file, or nothing in it.
std::optional<std::string> word_of(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  if (!std::getline(stream, line)) return std::nullopt;
  const auto first = line.find_first_not_of(" \t");
  if (first == std::string::npos) return std::nullopt;
  return line.substr(first, line.find_last_not_of(" \t") - first + 1);
}

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// -1 is how drivers say that they do not know.
std::optional<std::int64_t> number_in(const fs::path& file) {
  const auto text = word_of(file);
  const auto number = text ? number_of(*text) : std::nullopt;
  return number && *number >= 0 ? number : std::nullopt;
}

// Absent files are empty sets, and so is "(null)", which nohz_full says where it is not in use.
Result<CpuSet> cpus_in(const fs::path& file) {
  const auto text = word_of(file);
  if (!text || *text == "(null)") return CpuSet();
  auto cpus = CpuSet::parse(*text);
  if (!cpus) return failure("read " + file.string() + ": " + cpus.error().what);
  return cpus;
}

// "node3" → 3
std::optional<std::int64_t> id_after(std::string_view prefix, const std::string& name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  return number_of(std::string_view(name).substr(prefix.size()));
}

std::map<std::int64_t, fs::path> directories(const fs::path& parent, std::string_view prefix) {
  std::map<std::int64_t, fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(parent, error), end; !error && at != end; at.increment(error))
    if (const auto id = id_after(prefix, at->path().filename().string()))
      found.emplace(*id, at->path());
  return found;
}

// --- NUMA ------------------------------------------------------------------------------------

struct Nodes {
  std::map<Cpu, std::int64_t> of_cpu;
  std::vector<std::vector<int>> distances;  // by node id
};

std::vector<int> numbers(std::string_view text) {
  std::vector<int> all;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (const auto number = number_of(word)) all.push_back(static_cast<int>(*number));
  }
  return all;
}

// A line of distances has a column for each node that is online, by id; ids may have gaps.
void add_distances(const std::map<std::int64_t, fs::path>& nodes, Nodes& into) {
  if (nodes.empty() || nodes.rbegin()->first >= NodeSet::kMax) return;
  const auto size = static_cast<std::size_t>(nodes.rbegin()->first) + 1;
  for (const auto& [from, directory] : nodes) {
    const std::vector<int> line = numbers(word_of(directory / "distance").value_or(""));
    if (line.size() != nodes.size()) return into.distances.clear();
    if (into.distances.empty()) into.distances.assign(size, std::vector<int>(size, 0));
    std::size_t column = 0;
    for (const auto& [to, ignored] : nodes)
      into.distances[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)] = line[column++];
  }
}

Result<Nodes> read_nodes(const fs::path& sys) {
  Nodes nodes;
  const auto directory_of = directories(sys / "devices/system/node", "node");
  for (const auto& [id, directory] : directory_of) {
    const auto cpus = cpus_in(directory / "cpulist");
    if (!cpus) return tl::make_unexpected(cpus.error());
    for (const Cpu cpu : *cpus)
      nodes.of_cpu.emplace(cpu, id);
  }
  add_distances(directory_of, nodes);
  return nodes;
}

// --- one CPU ---------------------------------------------------------------------------------

// The kernel writes the siblings that are online; before 5.3 under the other name.
Result<Cpu> core_of(Cpu cpu, const fs::path& directory, const CpuSet& online) {
  for (const char* name : {"core_cpus_list", "thread_siblings_list"}) {
    const auto siblings = cpus_in(directory / "topology" / name);
    if (!siblings) return tl::make_unexpected(siblings.error());
    const CpuSet here = *siblings & online;
    if (here.contains(cpu)) return *here.begin();
  }
  return cpu;
}

// Where the firmware has no ids for packages (-1: some of sparc and s390) the lowest of the CPUs
// that share one stands for it. By the old name: the new one is of Linux 5.3.
Result<std::int64_t> socket_of(const fs::path& directory) {
  if (const auto id = number_in(directory / "topology/physical_package_id")) return *id;
  const auto siblings = cpus_in(directory / "topology/core_siblings_list");
  if (!siblings) return tl::make_unexpected(siblings.error());
  return siblings->empty() ? 0 : *siblings->begin();
}

// The L3's id, or on kernels and machines without ids the lowest CPU that shares it.
Result<std::optional<std::int64_t>> cache_of(const fs::path& directory) {
  for (const auto& [index, cache] : directories(directory / "cache", "index")) {
    if (number_in(cache / "level") != 3) continue;
    if (const auto id = number_in(cache / "id")) return id;
    const auto shared = cpus_in(cache / "shared_cpu_list");
    if (!shared) return tl::make_unexpected(shared.error());
    if (!shared->empty()) return *shared->begin();
  }
  return std::nullopt;
}

struct Row {
  CpuLocation place;
  bool has_cache = false;
};

Result<Row> read_row(const fs::path& sys, Cpu cpu, const CpuSet& online, const Nodes& nodes) {
  const fs::path directory = sys / "devices/system/cpu" / ("cpu" + std::to_string(cpu));
  const auto core = core_of(cpu, directory, online);
  if (!core) return tl::make_unexpected(core.error());
  const auto socket = socket_of(directory);
  if (!socket) return tl::make_unexpected(socket.error());
  const auto cache = cache_of(directory);
  if (!cache) return tl::make_unexpected(cache.error());
  const auto node = nodes.of_cpu.find(cpu);
  Row row;
  row.place = {.cpu = cpu,
               .core = *core,
               .socket = *socket,
               .numa = node == nodes.of_cpu.end() ? 0 : node->second,
               .uncore = cache->value_or(0)};
  row.has_cache = cache->has_value();
  return row;
}

// Where some CPUs have an L3 and others (low-power cores) have none, the latter's stand-in must not
// be the id of a cache.
std::vector<CpuLocation> with_default_caches(const std::vector<Row>& rows) {
  std::int64_t first_free = 0;
  for (const Row& row : rows)
    if (row.has_cache) first_free = std::max(first_free, row.place.uncore + 1);
  std::vector<CpuLocation> places;
  for (const Row& row : rows) {
    places.push_back(row.place);
    if (!row.has_cache) places.back().uncore = first_free + row.place.socket;
  }
  return places;
}

}  // namespace

Result<CpuSet> read_online_cpus(const fs::path& sys) {
  const fs::path file = sys / "devices/system/cpu/online";
  auto online = cpus_in(file);
  if (online && online->empty()) return failure("read " + file.string() + ": no CPU in it");
  return online;
}

Result<MachineCpus> read_topology(const fs::path& sys) {
  const fs::path cpus = sys / "devices/system/cpu";
  const auto online = read_online_cpus(sys);
  const auto present = cpus_in(cpus / "present");
  auto isolated = cpus_in(cpus / "isolated");
  auto nohz_full = cpus_in(cpus / "nohz_full");
  const auto nodes = read_nodes(sys);
  for (const auto* set : {&online, &present})
    if (!*set) return tl::make_unexpected(set->error());
  for (const auto* set : {&isolated, &nohz_full})
    if (!*set) return tl::make_unexpected(set->error());
  if (!nodes) return tl::make_unexpected(nodes.error());
  std::vector<Row> rows;
  for (const Cpu cpu : *online) {
    auto row = read_row(sys, cpu, *online, *nodes);
    if (!row) return tl::make_unexpected(row.error());
    rows.push_back(*row);
  }
  auto topology = Topology::of(with_default_caches(rows), nodes->distances);
  if (!topology) return tl::make_unexpected(topology.error());
  return MachineCpus{std::move(*topology), *present - *online, std::move(*isolated),
                     std::move(*nohz_full)};
}

std::vector<PciDevice> read_pci_devices(const fs::path& sys) {
  std::vector<PciDevice> devices;
  std::error_code error;
  const fs::path bus = sys / "bus/pci/devices";
  for (fs::directory_iterator at(bus, error), end; !error && at != end; at.increment(error)) {
    PciDevice device{.address = at->path().filename().string(), .numa = std::nullopt};
    if (const auto node = number_in(at->path() / "numa_node"))
      device.numa = static_cast<int>(*node);
    devices.push_back(std::move(device));
  }
  std::ranges::sort(devices, {}, &PciDevice::address);
  return devices;
}

}  // namespace headroom::observe
