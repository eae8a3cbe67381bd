// SPDX-License-Identifier: Apache-2.0
#include "judge/cpuset/allocation/take_cpus.h"

#include "judge/cpuset/allocation/cpu_packer.h"
#include "judge/cpuset/allocation/distribution.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace headroom {
namespace {

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
