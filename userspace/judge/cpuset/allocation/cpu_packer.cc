// SPDX-License-Identifier: Apache-2.0
#include "judge/cpuset/allocation/cpu_packer.h"

#include <algorithm>
#include <numeric>

namespace headroom {

Packer::Packer(const Topology& topology, const CpuSet& available, int needed, WorkCounter& work)
    : topology_(topology), remaining_(available), needed_(needed), work_counter_(work) {
  for (const Level level : {Level::kCore, Level::kUncore, Level::kSocket, Level::kNuma}) {
    left_[static_cast<std::size_t>(level)].resize(topology.groups(level).size());
    for (const Cpu cpu : remaining_)
      ++left_in(level, topology.group_of(level, cpu));
  }
  work_counter_.steps += static_cast<std::uint64_t>(remaining_.size());
}

CpuSet Packer::pack(CpuOrder order, bool prefer_uncore) {
  take_free(numa_outside() ? Level::kNuma : Level::kSocket);
  take_free(numa_outside() ? Level::kSocket : Level::kNuma);
  if (prefer_uncore && !satisfied()) take_uncores();
  if (order == CpuOrder::kPacked) {
    take_free(Level::kCore);
    take_singles(Level::kCore);
  } else {
    take_singles(Level::kSocket);
  }
  return taken_;
}

// --- orders ----------------------------------------------------------------------------------

bool Packer::numa_outside() const {
  return topology_.count(Level::kSocket) >= topology_.count(Level::kNuma);
}

std::vector<std::size_t> Packer::in_order(Level level) {
  const Level outer = numa_outside() ? Level::kNuma : Level::kSocket;
  const Level inner = numa_outside() ? Level::kSocket : Level::kNuma;
  if (level == outer) return present(level);
  if (level == inner) return nested(outer, level);
  // An uncore cache belongs to a node, whichever way the machine is nested.
  return nested(level == Level::kUncore ? Level::kNuma : inner, level);
}

// Best fit: the fullest group first, so that whole ones stay whole.
void Packer::sort(Level level, Order& groups) {
  std::ranges::sort(groups, [&](std::size_t a, std::size_t b) {
    ++work_counter_.steps;
    const int left_a = left_in(level, a);
    const int left_b = left_in(level, b);
    return left_a != left_b ? left_a < left_b : a < b;  // indices are in the order of ids
  });
}

Packer::Order Packer::present(Level level) {
  Order groups(topology_.groups(level).size());
  std::iota(groups.begin(), groups.end(), std::size_t{0});
  std::erase_if(groups, [&](std::size_t group) { return left_in(level, group) == 0; });
  sort(level, groups);
  return groups;
}

// For each outer group in its order, the inner ones that have CPUs left in it.
Packer::Order Packer::nested(Level outer, Level inner) {
  std::vector<Order> inside(topology_.groups(outer).size());
  for (const Cpu cpu : remaining_) {
    Order& groups = inside[topology_.group_of(outer, cpu)];
    const std::size_t group = topology_.group_of(inner, cpu);
    if (groups.empty() || groups.back() != group) groups.push_back(group);
  }
  work_counter_.steps += static_cast<std::uint64_t>(remaining_.size());
  Order all;
  for (const std::size_t group : in_order(outer)) {
    Order& groups = inside[group];
    sort(inner, groups);
    groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
    all.insert(all.end(), groups.begin(), groups.end());
  }
  return all;
}

// --- taking ----------------------------------------------------------------------------------

void Packer::take(Cpu cpu) {
  remaining_.erase(cpu);
  taken_.insert(cpu);
  --needed_;
  ++work_counter_.steps;
  for (const Level level : {Level::kCore, Level::kUncore, Level::kSocket, Level::kNuma})
    --left_in(level, topology_.group_of(level, cpu));
}

void Packer::take(const CpuSet& cpus) {
  for (const Cpu cpu : cpus)
    take(cpu);
}

// Every group all of which is left, as long as no more than needed.
void Packer::take_free(Level level) {
  if (satisfied()) return;
  for (const std::size_t group : in_order(level)) {
    ++work_counter_.steps;
    const int size = size_of(level, group);
    if (needed_ >= size && left_in(level, group) == size) take(topology_.groups(level)[group].cpus);
  }
}

void Packer::take_uncores() {
  for (const std::size_t uncore : in_order(Level::kUncore)) {
    if (needed_ >= topology_.cpus_per(Level::kUncore)) take_free(Level::kUncore);
    if (!satisfied()) take_partial_uncore(uncore);
    if (satisfied()) return;
  }
}

// All that is needed from one cache, out of its lowest cores; or nothing of it. The number of cores
// is rounded up, and an odd request leaves the last sibling: kubernetes/kubernetes 131850 (1.34).
void Packer::take_partial_uncore(std::size_t uncore) {
  const int per_core = std::max(1, topology_.cpus_per(Level::kCore));
  const auto cores_wanted = static_cast<std::size_t>((needed_ + per_core - 1) / per_core);
  const CpuSet within = topology_.groups(Level::kUncore)[uncore].cpus & remaining_;
  std::vector<std::size_t> cores;
  for (const Cpu cpu : within)
    cores.push_back(topology_.group_of(Level::kCore, cpu));
  std::ranges::sort(cores);
  cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
  if (cores.size() > cores_wanted) cores.resize(cores_wanted);
  work_counter_.steps += static_cast<std::uint64_t>(within.size());

  CpuSet cpus;
  for (const std::size_t core : cores)
    cpus |= topology_.groups(Level::kCore)[core].cpus & within;
  if (needed_ % 2 == 1 && per_core > 1 && cpus.size() > needed_) {
    Cpu highest = 0;
    for (const Cpu cpu : cpus)
      highest = cpu;
    cpus.erase(highest);
  }
  if (cpus.size() == needed_) take(cpus);
}

// CPU by CPU, ascending within each group of this level in its order.
void Packer::take_singles(Level within) {
  if (satisfied()) return;
  for (const std::size_t group : in_order(within)) {
    for (const Cpu cpu : topology_.groups(within)[group].cpus& remaining_) {
      if (satisfied()) return;
      take(cpu);
    }
  }
}

}  // namespace headroom
