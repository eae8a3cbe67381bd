// SPDX-License-Identifier: Apache-2.0
// HeadroomAgent: headroomd on a simulated node: its judge(), asked at the times that judge() sets.
//
// While no threshold is crossed and nothing is under way, judge() decides nothing, and the agent
// skips to kApproach before the next crossing; from there on it looks when judge() says.
#pragma once

#include "recording/tape.h"
#include "simulate/node/node.h"

#include <headroom/judge.h>
#include <headroom/policy.h>

#include <memory>
#include <string>

namespace headroom::simulate {

class HeadroomAgent : public Agent {
 public:
  // The looks before a crossing begin this long before it, and up to check_floor more.
  static constexpr Duration kApproach = std::chrono::milliseconds(20);

  // `recording`: every turn is appended to it; null: none is. `every_check`: no look is skipped.
  HeadroomAgent(std::shared_ptr<const Policy> policy, std::string* recording = nullptr,
                bool every_check = false);

  Instant next_look(const Node& node) const override;
  void look(Node& node, Scratch& scratch) override;
  bool has_memory_pressure(Instant at) const override;
  void prefetch() const override { __builtin_prefetch(this); }
  void end(Instant at) override;

 private:
  void draw_approach();
  bool has_work_under_way() const;
  Instant time_of_crossing(const Node& node) const;
  Snapshot node_snapshot(const Node& node) const;
  void add_pods(Node& node, Scratch& scratch, Snapshot& snapshot) const;
  void act(Node& node, Scratch& scratch);
  Outcome carry_out(Node& node, const Decision& decision);

  // What every step of the node reads comes first, in one cache line.
  std::shared_ptr<const Policy> policy_;
  Instant planned_{};              // Verdict::next_check of the latest look
  Duration approach_ = kApproach;  // of the next crossing
  const bool every_check_;
  bool is_attentive_;  // no look is skipped
  History history_;
  std::vector<Outcome> started_;  // their ends are reported at the next look
  recording::TapeWriter tape_;
  std::string* recording_;
};

}  // namespace headroom::simulate
