// SPDX-License-Identifier: Apache-2.0
// SchedulingSync: keeps what the API server knows of the node for its scheduler (soft taints, an
// annotation, conditions and batch resources) equal to headroomd's readings, with one write in
// kWritePeriod on average at most. An annotation that speaks against the node does not wait for the
// end of that time, and the write after it waits as much longer. What the node needs back is taken
// back at once, whatever was written before.
#pragma once

#include "kube/api/node_response.h"
#include "kube/scheduling/batch_resources.h"
#include "kube/scheduling/node_summary.h"
#include "kube/scheduling/scheduling_advice.h"
#include "kube/scheduling/scheduling_requests.h"

#include <headroom/result.h>
#include <headroom/units.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace headroom::kube {

// What is written, each by a request of its own.
enum class SchedulingPart : std::uint8_t { kTaints, kAnnotation, kStatus };
inline constexpr std::size_t kSchedulingParts = 3;
using SchedulingParts = std::array<bool, kSchedulingParts>;

struct SchedulingOptions {
  std::string node_name;
  bool taints = false, annotation = false, conditions = false, batch = false;
  SchedulingAdvice::Options advice{};

  // Which are wanted.
  SchedulingParts parts() const { return {taints, annotation, conditions || batch}; }
};

// What outlives a restart: what may be on the Node object, and the advice.
struct SchedulingState {
  SchedulingParts left{};
  AdviceStates advice{};
  BatchAmounts batch{};  // the most that the Node object may offer
  friend bool operator==(const SchedulingState&, const SchedulingState&) = default;
};
std::string as_text(const SchedulingState& state);
// An error says what is wrong with the text.
Result<SchedulingState> scheduling_state_of(const std::string& text);

// Which summary is to be on the Node object: one that differs in a fact from the last one, or has
// contention that rose, at once; one that differs in a number, kNumbersPeriod after it; the same
// one with a new time for a heartbeat.
class SummaryChoice {
 public:
  static constexpr Duration kNumbersPeriod = std::chrono::seconds(30);
  static constexpr Duration kHeartbeat = std::chrono::minutes(5);
  // While a hard threshold is met, which an extender believes for 90 seconds.
  static constexpr Duration kHardHeartbeat = std::chrono::seconds(30);

  // `current`: absent if nothing is known.
  void update(const std::optional<NodeSummary>& current, Instant at);
  const std::optional<NodeSummary>& chosen() const { return chosen_; }
  // It is worse than the last one that was written.
  bool is_urgent() const { return urgent_; }
  void set_written() { urgent_ = false; }

 private:
  bool is_to_be_replaced(SummaryChange change, Duration age, const NodeSummary& current) const;

  std::optional<NodeSummary> chosen_;
  bool urgent_ = false;
  Instant chosen_at_{};
};

class SchedulingSync {
 public:
  // Writes to the API server, on average at least so far apart: 0.1 a second.
  static constexpr Duration kWritePeriod = std::chrono::seconds(10);
  // Unchanged conditions are written this seldom, as a kubelet does.
  static constexpr Duration kHeartbeat = std::chrono::minutes(5);
  // How often taints and batch resources are read: another writer may have removed them.
  static constexpr Duration kRecheckPeriod = std::chrono::minutes(1);
  // A hard threshold counts as met for so long after it was.
  static constexpr Duration kHardHold = std::chrono::seconds(30);

  SchedulingSync(SchedulingOptions options, const SchedulingState& state);

  // `signals`: absent if headroomd did not answer. `time`: the same instant.
  void observe(const std::optional<NodeSignals>& signals, Instant at, WallTime time);

  // Does what is due: one write at most, and a read before it.
  NodeSyncResult run_once(Instant now, WallTime time, double chance, const Exchange& exchange);

  // The request that takes back all batch resources, for the end of the program; absent if nothing
  // is to be taken back.
  std::optional<HttpRequest> last_retraction(WallTime time) const;
  // That request succeeded.
  void set_retracted();

  const SchedulingState& state() const { return state_; }
  // Nothing of headroom's is wanted on the Node object, and nothing is left there.
  bool is_finished() const;
  std::uint64_t writes(SchedulingPart part) const {
    return parts_[static_cast<std::size_t>(part)].writes;
  }

 private:
  struct Part {
    std::string sent{};    // describes what the API has, if settled
    bool settled = false;  // false: what the API has is not known
    unsigned failures = 0;
    Instant next{};  // the next heartbeat, recheck or retry
    std::uint64_t writes = 0;
  };
  std::optional<NodeSummary> summary(const std::optional<NodeSignals>& signals, Instant at,
                                     WallTime time);
  BatchAmounts batch() const { return {.memory = batch_.memory(), .cpu = batch_.cpu()}; }
  // The node needs back what it offers.
  bool retracts() const;
  HttpRequest status_request(const std::optional<BatchAmounts>& batch, WallTime time) const;
  // What the API should have, as text to compare; "": nothing.
  std::string desired(std::size_t part) const;
  bool is_known(std::size_t part) const;
  bool is_due(std::size_t part, Instant now) const;
  NodeSyncResult send(std::size_t part, Instant now, WallTime time, const Exchange& exchange);
  NodeSyncResult send_status(Instant now, WallTime time, const Exchange& exchange);
  NodeSyncResult send_taints(Instant now, const Exchange& exchange);
  NodeSyncResult write(SchedulingPart part, const HttpRequest& request, Instant now,
                       const Exchange& exchange);
  void record(std::size_t part, const NodeSyncResult& result, Instant now, double chance);

  const SchedulingOptions options_;
  SchedulingState state_;
  SchedulingAdvice advice_;
  SummaryChoice summary_;
  BatchResources batch_;
  // The most that the API may have; absent: nothing was sent yet.
  std::optional<BatchAmounts> sent_batch_{};
  Instant heartbeat_at_{};      // of the status
  std::string hard_threshold_;  // that was met last
  Instant hard_until_{};
  std::array<Part, kSchedulingParts> parts_{};
  Instant next_write_{};
};

}  // namespace headroom::kube
