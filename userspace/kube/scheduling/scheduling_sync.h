// SPDX-License-Identifier: Apache-2.0
// SchedulingSync: keeps what the API server knows of the node for its scheduler (soft taints and
// conditions) equal to the advice, with at most one write in kWritePeriod.
#pragma once

#include "kube/api/node_response.h"
#include "kube/scheduling/scheduling_advice.h"

#include <headroom/result.h>
#include <headroom/units.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace headroom::kube {

struct SchedulingOptions {
  std::string node_name;
  bool taints = false;
  bool conditions = false;
  SchedulingAdvice::Options advice{};
};

// What outlives a restart: what may be on the Node object, and the advice.
struct SchedulingState {
  bool taints = false;
  bool conditions = false;
  AdviceStates advice{};
  friend bool operator==(const SchedulingState&, const SchedulingState&) = default;

  bool left_anything() const { return taints || conditions; }
};
std::string as_text(const SchedulingState& state);
// An error says what is wrong with the text.
Result<SchedulingState> scheduling_state_of(const std::string& text);

class SchedulingSync {
 public:
  // Writes to the API server, at least so far apart: 0.1 a second.
  static constexpr Duration kWritePeriod = std::chrono::seconds(10);
  // Unchanged conditions are written this seldom, as a kubelet does.
  static constexpr Duration kHeartbeat = std::chrono::minutes(5);
  // How often taints are read: another writer of the list may have removed headroom's.
  static constexpr Duration kRecheckPeriod = std::chrono::minutes(1);

  SchedulingSync(SchedulingOptions options, const SchedulingState& state);

  // `signals`: absent if headroomd did not answer. `time`: the same instant in RFC 3339.
  void observe(const std::optional<NodeSignals>& signals, Instant at, const std::string& time);

  // Does what is due: at most one write, and a read before it.
  NodeSyncResult run_once(Instant now, const std::string& time, double chance,
                          const Exchange& exchange);

  const SchedulingState& state() const { return state_; }
  // Nothing of headroom's is wanted on the Node object, and nothing is left there.
  bool is_finished() const {
    return !options_.taints && !options_.conditions && !state_.left_anything();
  }
  std::uint64_t taint_writes() const { return taints_.writes; }
  std::uint64_t status_writes() const { return status_.writes; }

 private:
  // One of the two objects that are written: the Node and its status.
  struct Part {
    std::optional<AdviceStates> sent{};
    bool settled = false;  // true: the API has `sent`; false: unknown
    unsigned failures = 0;
    Instant next{};  // the next heartbeat, recheck or retry
    std::uint64_t writes = 0;
  };
  std::optional<AdviceStates> desired(bool enabled) const;
  bool is_due(const Part& part, bool enabled, bool left_behind, Instant now) const;
  bool has_known_advice() const;
  NodeSyncResult write(Part& part, const HttpRequest& request, Instant now,
                       const Exchange& exchange);
  NodeSyncResult patch_taints(Instant now, const Exchange& exchange);
  void record(Part& part, const NodeSyncResult& result, bool enabled, Duration again, Instant now,
              double chance);

  const SchedulingOptions options_;
  SchedulingState state_;
  SchedulingAdvice advice_;
  Part taints_, status_;
  Instant next_write_{};
};

}  // namespace headroom::kube
