// SPDX-License-Identifier: Apache-2.0
// Models of what headroom is compared with: the kubelet's eviction manager, the same with an agent
// like koordinator's beside it, and a node without any of them.
#pragma once

#include "simulate/node/node.h"

#include <headroom/policy.h>

#include <memory>
#include <optional>
#include <vector>

namespace headroom::simulate {

// The kernel's OOM killer alone.
class NoAgent : public Agent {
 public:
  Instant next_look(const Node&) const override { return kNever; }
  void look(Node&, Scratch&) override {}
  bool has_memory_pressure(Instant) const override { return false; }
};

// The eviction manager (kubelet: eviction): every ten seconds it reads the node's signal, and ranks
// the pods by their usage as it was sampled ten seconds before. It evicts one pod, waits until that
// has left the node, 30 s at most, and looks again at once.
class KubeletAgent : public Agent {
 public:
  // `phase`: when its first look is; less than kKubeletPeriod.
  KubeletAgent(std::shared_ptr<const Policy> policy, Duration phase);

  Instant next_look(const Node& node) const override;
  void look(Node& node, Scratch& scratch) override;
  bool has_memory_pressure(Instant at) const override;

 private:
  Instant tick_at_or_after(Instant at) const;
  std::optional<std::size_t> met_threshold(const Node& node);
  std::optional<std::size_t> first_of_ranking(const Node& node) const;
  void evict(Node& node, std::size_t pod, bool hard);

  std::shared_ptr<const Policy> policy_;
  const Duration phase_;
  std::vector<std::optional<Instant>> first_observed_;  // by threshold
  std::vector<bool> was_met_;                           // by threshold, past its grace
  std::optional<Instant> last_pressure_;
  // It waits for this pod to leave, until then, and looks at it every second.
  std::optional<CgroupId> awaited_;
  Instant awaited_until_, next_poll_;
  Instant last_look_;
};

// koordlet's eviction by memory use, at its defaults: every second, above 70 % of the node's
// memory, it kills BestEffort pods, of lower priority and larger use first, until 68 % would be in
// use; then it pauses for four seconds. The kubelet runs beside it. koord-manager offers BestEffort
// pods (batch-memory) what is left of kBatchShare, by the use that is reported once a minute.
class KoordinatorAgent : public Agent {
 public:
  static constexpr double kBatchShare = 0.65;
  static constexpr Duration kReportPeriod = std::chrono::seconds(60);

  KoordinatorAgent(std::shared_ptr<const Policy> policy, Duration phase);

  Instant next_look(const Node& node) const override;
  void look(Node& node, Scratch& scratch) override;
  bool has_memory_pressure(Instant at) const override { return kubelet_.has_memory_pressure(at); }

 private:
  Instant own_next_look(const Node& node) const;
  void evict_best_effort(Node& node);

  KubeletAgent kubelet_;
  const Duration phase_;
  Instant not_before_{}, last_look_{};
};

}  // namespace headroom::simulate
