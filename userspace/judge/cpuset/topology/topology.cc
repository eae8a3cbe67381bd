// SPDX-License-Identifier: Apache-2.0
#include <headroom/topology.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <optional>
#include <string>

namespace headroom {
namespace {

std::int64_t id_of(const CpuLocation& place, Level level) {
  switch (level) {
    case Level::kCore:
      return place.core;
    case Level::kUncore:
      return place.uncore;
    case Level::kSocket:
      return place.socket;
    case Level::kNuma:
      return place.numa;
  }
  return 0;
}

std::optional<std::string> topology_error(const CpuLocation& row) {
  const std::string cpu = "CPU " + std::to_string(row.cpu);
  if (row.cpu < 0 || row.core < 0 || row.socket < 0 || row.numa < 0 || row.uncore < 0)
    return cpu + ": a negative number in its row";
  if (row.numa >= NodeSet::kMax)
    return cpu + ": NUMA node " + std::to_string(row.numa) + " is beyond " +
           std::to_string(NodeSet::kMax - 1);
  return std::nullopt;
}

std::optional<std::string> topology_error(std::span<const CpuLocation> places) {
  std::map<std::int64_t, const CpuLocation*> cores;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (auto error_text = topology_error(places[i])) return error_text;
    if (i > 0 && places[i].cpu == places[i - 1].cpu)
      return "CPU " + std::to_string(places[i].cpu) + " is listed twice";
    const CpuLocation& first = *cores.try_emplace(places[i].core, &places[i]).first->second;
    if (first.socket != places[i].socket || first.numa != places[i].numa)
      return "core " + std::to_string(places[i].core) + " is in two sockets or NUMA nodes";
  }
  return std::nullopt;
}

}  // namespace

std::vector<int> NodeSet::ids() const {
  std::vector<int> ids;
  for (std::uint64_t left = bits; left; left &= left - 1)
    ids.push_back(std::countr_zero(left));
  return ids;
}

int NumaMap::distance(int from, int to) const {
  const auto row = static_cast<std::size_t>(from);
  const auto column = static_cast<std::size_t>(to);
  if (row < distances.size() && column < distances[row].size()) return distances[row][column];
  return from == to ? 10 : 20;  // LOCAL_DISTANCE, REMOTE_DISTANCE of linux/topology.h
}

Result<Topology> Topology::of(std::vector<CpuLocation> rows,
                              std::vector<std::vector<int>> distances) {
  if (rows.empty()) return failure("CPU topology: no CPU");
  std::ranges::sort(rows, {}, &CpuLocation::cpu);
  if (const auto error_text = topology_error(rows)) return failure("CPU topology: " + *error_text);
  Topology topology;
  topology.places_ = std::move(rows);
  for (const CpuLocation& place : topology.places_) {
    topology.cpus_.insert(place.cpu);
    topology.numa_.nodes = topology.numa_.nodes | NodeSet::of(place.numa);
  }
  topology.numa_.distances = std::move(distances);
  for (const Level level : {Level::kCore, Level::kUncore, Level::kSocket, Level::kNuma})
    topology.group(level);
  return topology;
}

void Topology::group(Level level) {
  std::map<std::int64_t, CpuSet> by_id;
  for (const CpuLocation& place : places_)
    by_id[id_of(place, level)].insert(place.cpu);
  for (auto& [id, cpus] : by_id)
    groups_[at(level)].push_back({id, std::move(cpus)});
  for (const CpuLocation& place : places_) {
    const auto group =
        std::ranges::lower_bound(groups_[at(level)], id_of(place, level), {}, &CpuGroup::id);
    group_of_[at(level)].push_back(static_cast<std::size_t>(group - groups_[at(level)].begin()));
  }
}

std::size_t Topology::row_of(Cpu cpu) const {
  // The row's index is the CPU's number, unless CPUs are missing.
  const auto guess = static_cast<std::size_t>(cpu);
  if (guess < places_.size() && places_[guess].cpu == cpu) return guess;
  const auto row = std::ranges::lower_bound(places_, cpu, {}, &CpuLocation::cpu);
  assert(row != places_.end() && row->cpu == cpu);
  return static_cast<std::size_t>(row - places_.begin());
}

std::size_t Topology::group_of(Level level, Cpu cpu) const {
  return group_of_[at(level)][row_of(cpu)];
}

NodeSet Topology::nodes_of(const CpuSet& cpus) const {
  NodeSet nodes;
  for (const Cpu cpu : cpus)
    nodes = nodes | NodeSet::of(places_[row_of(cpu)].numa);
  return nodes;
}

CpuSet Topology::cpus_of(NodeSet nodes) const {
  CpuSet cpus;
  for (const CpuGroup& node : groups(Level::kNuma))
    if (nodes.contains(node.id)) cpus |= node.cpus;
  return cpus;
}

CpuSet Topology::widened(const CpuSet& cpus, Level level) const {
  CpuSet wide;
  for (const Cpu cpu : cpus)
    if (!wide.contains(cpu)) wide |= groups(level)[group_of(level, cpu)].cpus;
  return wide;
}

}  // namespace headroom
