// SPDX-License-Identifier: Apache-2.0
// Topology: the machine's CPUs, each with its core, uncore cache, socket and NUMA node, and how far
// the nodes are apart. An immutable value, built from rows.
#pragma once

#include <headroom/cpuset.h>
#include <headroom/result.h>

#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace headroom {

// The location of one logical CPU. The kubelet's identifiers (kubelet: cm/cpumanager): `core` is
// the lowest CPU among its SMT siblings; `uncore` the id of its L3, or its socket where there is
// none.
struct CpuLocation {
  Cpu cpu = 0;
  std::int64_t core = 0;
  std::int64_t socket = 0;
  std::int64_t numa = 0;
  std::int64_t uncore = 0;
  friend bool operator==(const CpuLocation&, const CpuLocation&) = default;
};

// A set of NUMA nodes by id: below 64, as in the kubelet's bitmask.
struct NodeSet {
  static constexpr std::int64_t kMax = 64;

  std::uint64_t bits = 0;

  static constexpr NodeSet of(std::int64_t node) { return {std::uint64_t{1} << node}; }
  constexpr int count() const { return std::popcount(bits); }
  constexpr bool empty() const { return bits == 0; }
  constexpr bool contains(std::int64_t node) const { return bits >> node & 1; }
  constexpr bool contains(NodeSet other) const { return (other.bits & ~bits) == 0; }
  std::vector<int> ids() const;  // ascending

  friend constexpr NodeSet operator|(NodeSet a, NodeSet b) { return {a.bits | b.bits}; }
  friend constexpr NodeSet operator&(NodeSet a, NodeSet b) { return {a.bits & b.bits}; }
  friend constexpr bool operator==(NodeSet, NodeSet) = default;
  friend constexpr std::strong_ordering operator<=>(NodeSet a, NodeSet b) {
    return a.bits <=> b.bits;
  }
};

// The NUMA nodes that have CPUs, and their distances as in ACPI's SLIT (10: the node itself).
struct NumaMap {
  NodeSet nodes;
  std::vector<std::vector<int>> distances{};  // by node id; missing: the kernel's own defaults

  int distance(int from, int to) const;
};

enum class Level : std::uint8_t { kCore, kUncore, kSocket, kNuma };
inline constexpr std::size_t kLevels = 4;

// One core, uncore cache, socket or NUMA node.
struct CpuGroup {
  std::int64_t id = 0;
  CpuSet cpus;
};

class Topology {
 public:
  // Rows in any order. An error names the invalid row: a CPU twice, a negative number, a core in
  // two sockets or nodes, a node beyond NodeSet.
  static Result<Topology> of(std::vector<CpuLocation> rows,
                             std::vector<std::vector<int>> distances = {});

  const CpuSet& cpus() const { return cpus_; }
  std::span<const CpuLocation> places() const { return places_; }  // ascending by CPU
  const NumaMap& numa() const { return numa_; }

  std::span<const CpuGroup> groups(Level level) const { return groups_[at(level)]; }  // by id
  int count(Level level) const { return static_cast<int>(groups(level).size()); }
  // CPUs per group on average, rounded down (the kubelet's CPUsPerCore and the like). On hybrid
  // machines no group may have this size, so it is not used to decide whether a group is free.
  int cpus_per(Level level) const { return cpus_.size() / count(level); }
  // Which of groups(level) holds this CPU, one of cpus().
  std::size_t group_of(Level level, Cpu cpu) const;

  NodeSet nodes_of(const CpuSet& cpus) const;
  CpuSet cpus_of(NodeSet nodes) const;
  // Every CPU of every group at `level` that one of `cpus` belongs to.
  CpuSet widened(const CpuSet& cpus, Level level) const;

 private:
  static constexpr std::size_t at(Level level) { return static_cast<std::size_t>(level); }
  std::size_t row_of(Cpu cpu) const;
  void group(Level level);

  CpuSet cpus_;
  std::vector<CpuLocation> places_;
  std::array<std::vector<CpuGroup>, kLevels> groups_;
  std::array<std::vector<std::size_t>, kLevels> group_of_;  // by row of places_
  NumaMap numa_;
};

}  // namespace headroom
