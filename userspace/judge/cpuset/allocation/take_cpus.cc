// SPDX-License-Identifier: Apache-2.0
#include "judge/cpuset/allocation/take_cpus.h"

#include "judge/cpuset/allocation/distribution.h"

#include <headroom/cpuset.h>
#include <headroom/topology.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <optional>
#include <vector>

namespace headroom {
namespace {

// Packer: one packed take in progress, what it has and what it still may take (kubelet:
// cm/cpumanager/cpu_assignment.go).

class Packer {
 public:
  Packer(const Topology& topology, const CpuSet& available, int needed, WorkCounter& work);

  // Takes until nothing is needed; there must be enough.
  CpuSet pack(CpuOrder order, bool prefer_uncore);

  // Groups (indices into topology.groups(level)) with CPUs left, in the order they are taken.
  std::vector<std::size_t> in_order(Level level);

 private:
  using Order = std::vector<std::size_t>;

  bool satisfied() const { return needed_ == 0; }
  // NUMA nodes contain sockets, or the other way round; cores lie in the inner one.
  bool numa_outside() const;
  int& left_in(Level level, std::size_t group) {
    return left_[static_cast<std::size_t>(level)][group];
  }
  int size_of(Level level, std::size_t group) const {
    return topology_.groups(level)[group].cpus.size();
  }
  Order present(Level level);
  void sort(Level level, Order& groups);
  Order nested(Level outer, Level inner);

  void take(Cpu cpu);
  void take(const CpuSet& cpus);
  void take_free(Level level);
  void take_uncores();
  void take_partial_uncore(std::size_t uncore);
  void take_singles(Level within);

  const Topology& topology_;
  CpuSet remaining_;
  CpuSet taken_;
  int needed_;
  std::array<std::vector<int>, kLevels> left_;  // remaining CPUs by level and group
  WorkCounter& work_counter_;
};

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

int divide_round_up(int what, int by) {
  return (what + by - 1) / by;
}

CpuSet packed(const Topology& topology, const CpuSet& available, int count, CpuOrder order,
              bool prefer_uncore, WorkCounter& work) {
  return Packer(topology, available, count, work).pack(order, prefer_uncore);
}

// A distribution being carried out: each node gives by the packed rule.
class RoundRobin {
 public:
  RoundRobin(const Topology& topology, const CpuSet& available,
             const std::vector<std::size_t>& nodes, CpuOrder order, WorkCounter& work)
      : topology_(topology), order_(order), work_counter_(work) {
    for (const std::size_t node : nodes)
      left_.push_back(available & topology.groups(Level::kNuma)[node].cpus);
  }

  CpuSet by(const Distribution& plan, int count, int group) {
    for (const std::size_t node : plan.nodes)
      give(node, plan.each);
    for (std::size_t turn = 0; taken_.size() < count; ++turn) {
      const std::size_t node = plan.remainder[turn % plan.remainder.size()];
      if (left_[node].size() >= group) give(node, group);
    }
    return taken_;
  }

 private:
  void give(std::size_t node, int count) {
    const CpuSet given = packed(topology_, left_[node], count, order_, false, work_counter_);
    left_[node] -= given;
    taken_ |= given;
  }

  const Topology& topology_;
  CpuOrder order_;
  WorkCounter& work_counter_;
  std::vector<CpuSet> left_;  // by node, in the order they are tried
  CpuSet taken_;
};

std::optional<CpuSet> distributed(const Topology& topology, const CpuSet& available, int count,
                                  const TakeRules& rules, WorkCounter& work) {
  if (count % rules.group != 0) return std::nullopt;
  const std::vector<std::size_t> nodes =
      Packer(topology, available, count, work).in_order(Level::kNuma);
  std::vector<int> left;
  left.reserve(nodes.size());
  for (const std::size_t node : nodes)
    left.push_back(available.overlap(topology.groups(Level::kNuma)[node].cpus));
  const int groups = divide_round_up(topology.cpus().size(), rules.group);
  const int groups_per_node = divide_round_up(groups, topology.count(Level::kNuma));
  const auto plan = distribute(
      {.left = left,
       .count = count,
       .group = rules.group,
       .fewest_nodes = divide_round_up(divide_round_up(count, rules.group), groups_per_node)},
      work);
  if (!plan) return std::nullopt;
  return RoundRobin(topology, available, nodes, rules.order, work).by(*plan, count, rules.group);
}

}  // namespace

std::string NotEnoughCpus::message() const {
  return "not enough cpus available to satisfy request: requested=" + std::to_string(requested) +
         ", available=" + std::to_string(available);
}

TakeResult take(const Topology& topology, const CpuSet& available, int count,
                const TakeRules& rules, WorkCounter* work) {
  if (count <= 0) return CpuSet{};
  const int there = available.size();
  if (count > there) return tl::make_unexpected(NotEnoughCpus{count, there});
  WorkCounter uncounted;
  WorkCounter& spent = work ? *work : uncounted;
  if (rules.across_numa) {
    if (const auto spread = distributed(topology, available, count, rules, spent)) return *spread;
  }
  return packed(topology, available, count, rules.order, rules.prefer_uncore && !rules.across_numa,
                spent);
}

}  // namespace headroom
