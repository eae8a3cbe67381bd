// SPDX-License-Identifier: Apache-2.0
#include "judge/vectors/topology_json.h"

#include "judge/vectors/lines.h"

#include <cstdint>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

namespace headroom::vectors {
namespace {

// What the vectors' machines have: 10 itself, 12 within a socket, 21 to another one.
std::vector<std::vector<int>> distances_of(const std::vector<CpuLocation>& rows) {
  std::map<std::int64_t, std::int64_t> socket_of;
  for (const CpuLocation& row : rows)
    socket_of[row.numa] = row.socket;
  std::vector<std::vector<int>> distances(socket_of.size());
  for (const auto& [from, socket] : socket_of)
    for (const auto& [to, other] : socket_of)
      distances.at(static_cast<std::size_t>(from))
          .push_back(from == to        ? 10
                     : socket == other ? 12
                                       : 21);
  return distances;
}

Topology topology_of(const nlohmann::json& machine) {
  std::vector<CpuLocation> rows;
  for (const auto& row : machine.at("cpus"))
    rows.push_back({row.at(0), row.at(1), row.at(2), row.at(3), row.at(4)});
  auto topology = Topology::of(rows, distances_of(rows));
  if (!topology) throw std::runtime_error(topology.error().what);
  if (topology->count(Level::kSocket) != machine.at("num_sockets") ||
      topology->count(Level::kCore) != machine.at("num_cores") ||
      topology->cpus().size() != machine.at("num_cpus"))
    throw std::runtime_error(machine.at("name").get<std::string>() + ": other counts");
  return *std::move(topology);
}

}  // namespace

const Topology& topology_named(const std::string& name) {
  static const std::map<std::string, Topology> machines = [] {
    std::map<std::string, Topology> all;
    for (const Line& line : lines_of("cpu_topologies.jsonl"))
      all.emplace(line.json.at("name").get<std::string>(), topology_of(line.json));
    return all;
  }();
  return machines.at(name);
}

CpuSet cpus_of(const std::string& list) {
  const auto cpus = CpuSet::parse(list);
  if (!cpus) throw std::runtime_error(cpus.error().what);
  return *cpus;
}

}  // namespace headroom::vectors
