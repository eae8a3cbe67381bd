// SPDX-License-Identifier: Apache-2.0
// Handing out r groups in turn over a list of nodes, skipping the exhausted, comes to this: each
// gives t groups (or all it has), and those before some point of the list, which have more, give
// one more. So for a given t a choice is a walk over the nodes: skip it, let it give its even
// share, or let it give of the remainder as well, before or after that point. The best walk is a
// table.
#include "judge/cpuset/allocation/distribution.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <tuple>

namespace headroom {
namespace {

using Gain = std::int64_t;
constexpr Gain kImpossible = std::numeric_limits<Gain>::min() / 2;

// For one number of nodes.
struct Problem {
  std::span<const int> left;
  int group;
  int nodes;   // how many must be chosen
  int each;    // CPUs every chosen one gives
  int groups;  // and these on top, in turn
  // Prefer, of equally even walks, the one with more nodes in the remainder.
  bool longest_remainder;
};

enum class Role : std::uint8_t { kSkipped, kChosen, kRemainder };

// Where a walk stands before it decides on a node.
struct State {
  int nodes;   // still to choose
  int groups;  // still to hand out
  bool past;   // the point after which no node gives one more
  friend bool operator==(const State&, const State&) = default;
};

struct Option {
  Role role;
  Gain gain;
  State next;
};

// By how much a node's square shrinks when it gives. Balances have equal sums, so they are compared
// by their sums of squares.
Gain gain_of(Gain left, Gain given) {
  return left * left - (left - given) * (left - given);
}

// Calls `use` with everything that can become of node `i`.
template <class Use>
void for_each_option(const Problem& problem, int rounds, std::size_t i, State at, Use use) {
  use(Option{Role::kSkipped, 0, at});
  const int left = problem.left[i];
  if (at.nodes == 0 || left < problem.each) return;
  const Gain weight = problem.longest_remainder ? static_cast<Gain>(problem.left.size()) + 1 : 1;
  const auto offer = [&](Role role, int groups, bool past) {
    if (groups > at.groups) return;
    const Gain gain = gain_of(left, problem.each + groups * problem.group) * weight +
                      (problem.longest_remainder && role == Role::kRemainder ? 1 : 0);
    use(Option{role, gain, {at.nodes - 1, at.groups - groups, past}});
  };
  offer(Role::kChosen, 0, at.past);
  const int can_give = (left - problem.each) / problem.group;
  if (can_give == 0 || problem.groups == 0) return;
  if (!at.past) offer(Role::kRemainder, std::min(can_give, rounds + 1), false);
  offer(Role::kRemainder, std::min(can_give, rounds), true);
}

// Best gain from every state on, for one number of full rounds.
class Table {
 public:
  Table(const Problem& problem, int rounds, WorkCounter& work)
      : problem_(&problem),
        rounds_(rounds),
        best_((problem.left.size() + 1) * width(), kImpossible) {
    best_[index(problem.left.size(), {0, 0, false})] = 0;
    best_[index(problem.left.size(), {0, 0, true})] = 0;
    for (std::size_t i = problem.left.size(); i-- > 0;)
      fill(i, work);
  }

  int rounds() const { return rounds_; }
  Gain best(std::size_t i, State at) const { return best_[index(i, at)]; }

 private:
  std::size_t width() const {
    return static_cast<std::size_t>(problem_->nodes + 1) *
           static_cast<std::size_t>(problem_->groups + 1) * 2;
  }
  std::size_t index(std::size_t i, State at) const {
    return i * width() +
           static_cast<std::size_t>((at.nodes * (problem_->groups + 1) + at.groups) * 2 + at.past);
  }
  void fill(std::size_t i, WorkCounter& work) {
    for (int nodes = 0; nodes <= problem_->nodes; ++nodes)
      for (int groups = 0; groups <= problem_->groups; ++groups)
        for (const bool past : {false, true}) {
          const State at{nodes, groups, past};
          for_each_option(*problem_, rounds_, i, at, [&](const Option& option) {
            Gain& best = best_[index(i, at)];
            best = std::max(best, option.gain + best_[index(i + 1, option.next)]);
            ++work.steps;
          });
        }
  }

  const Problem* problem_;
  int rounds_;
  std::vector<Gain> best_;  // by node, then state
};

// A best walk's position: several may share the choices made so far.
struct Position {
  const Table* table;
  State at;
  friend bool operator==(const Position&, const Position&) = default;
};

// Where the best walks are after node `i` if only options that `allowed` may be taken.
template <class Allowed>
std::vector<Position> stepped(const Problem& problem, std::size_t i,
                              const std::vector<Position>& from, Allowed allowed) {
  std::vector<Position> next;
  for (const auto& [table, at] : from)
    for_each_option(problem, table->rounds(), i, at, [&, table = table, at = at](const Option& o) {
      const Gain rest = table->best(i + 1, o.next);
      if (!allowed(o.role) || rest < 0 || o.gain + rest != table->best(i, at)) return;
      const Position position{table, o.next};
      if (std::ranges::find(next, position) == next.end()) next.push_back(position);
    });
  return next;
}

// Every number of full rounds whose best walk is the best of all: no more can be given out.
std::vector<Table> best_tables(const Problem& problem, WorkCounter& work) {
  std::vector<Table> tables;
  const State start{problem.nodes, problem.groups, false};
  Gain best = -1;
  for (int rounds = 0; rounds < std::max(1, problem.groups); ++rounds) {
    Table table(problem, rounds, work);
    const Gain gain = table.best(0, start);
    if (gain < 0 || gain < best) continue;
    if (gain > best) tables.clear();
    best = gain;
    tables.push_back(std::move(table));
  }
  return tables;
}

// The nodes that are `wanted` in the lexicographically first best walk; absent where there is none.
template <class Wanted>
std::optional<std::vector<std::size_t>> first_best(const Problem& problem, Wanted wanted,
                                                   WorkCounter& work) {
  const std::vector<Table> tables = best_tables(problem, work);
  if (tables.empty()) return std::nullopt;
  std::vector<Position> positions;
  positions.reserve(tables.size());
  for (const Table& table : tables)
    positions.push_back({&table, {problem.nodes, problem.groups, false}});
  std::vector<std::size_t> nodes;
  for (std::size_t i = 0; i < problem.left.size(); ++i) {
    auto next = stepped(problem, i, positions, wanted);
    if (next.empty())
      next = stepped(problem, i, positions, [&](Role role) { return !wanted(role); });
    else
      nodes.push_back(i);
    positions = std::move(next);
  }
  return nodes;
}

// Over which of the chosen nodes the remainder goes in turn.
std::vector<std::size_t> remainder_of(Problem problem, const std::vector<std::size_t>& nodes,
                                      WorkCounter& work) {
  std::vector<int> left;
  left.reserve(nodes.size());
  for (const std::size_t node : nodes)
    left.push_back(problem.left[node]);
  problem.left = left;
  problem.longest_remainder = true;
  const auto chosen = first_best(
      problem, [](Role role) { return role == Role::kRemainder; }, work);
  std::vector<std::size_t> remainder;
  if (chosen)
    for (const std::size_t i : *chosen)
      remainder.push_back(nodes[i]);
  return remainder;
}

}  // namespace

std::optional<Distribution> distribute(const DistributionRequest& request, WorkCounter& work) {
  const int groups = request.count / request.group;
  const int most = std::min(groups, static_cast<int>(request.left.size()));
  for (int nodes = request.fewest_nodes; nodes <= most; ++nodes) {
    const Problem problem{.left = request.left,
                          .group = request.group,
                          .nodes = nodes,
                          .each = groups / nodes * request.group,
                          .groups = groups % nodes,
                          .longest_remainder = false};
    const auto chosen = first_best(
        problem, [](Role role) { return role != Role::kSkipped; }, work);
    if (!chosen) continue;
    return Distribution{.nodes = *chosen,
                        .each = problem.each,
                        .remainder = problem.groups > 0 ? remainder_of(problem, *chosen, work)
                                                        : std::vector<std::size_t>{}};
  }
  return std::nullopt;
}

}  // namespace headroom
