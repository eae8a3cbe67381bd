// SPDX-License-Identifier: Apache-2.0
// NodeConditionSync: keeps the node's conditions and taints in the API equal to headroomd's. It
// sends them when they change, and every few minutes as a heartbeat.
#pragma once

#include "kube/api/eviction_queue.h"
#include "kube/api/node_response.h"
#include "kube/api/pending_eviction.h"
#include "kube/http_client.h"

#include <headroom/result.h>
#include <headroom/signal.h>
#include <headroom/units.h>

#include <array>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace headroom::kube {

// Node requests: the requests to the API server about the node itself. Pure.
//
// The conditions have their own types, HeadroomMemoryPressure and so on. A kubelet writes its own
// MemoryPressure with every status, from its own reading, and would overwrite ours within seconds;
// it leaves unknown types alone. Conditions are sent by server-side apply: the list of conditions
// is a map by type, in which headroom owns only its own entries.
//
// The taints have their own keys too: node.kubernetes.io/memory-pressure is removed from a node
// whose kubelet reports no pressure. How they are written is in node_taints.h.

struct NodeCondition {
  std::optional<bool> holds;  // absent: unknown, because headroomd does not report
  std::string since;          // RFC 3339
  friend bool operator==(const NodeCondition&, const NodeCondition&) = default;
};
// Indexed by Condition.
using NodeConditions = std::array<NodeCondition, kConditions>;

// Reads the conditions from the v1 Node that headroomd writes to its status file.
Result<NodeConditions> conditions_of(const std::string& node_json);

std::string_view condition_type(Condition condition);  // "HeadroomMemoryPressure"
std::string_view taint_key(Condition condition);       // "headroom.io/memory-pressure"

// `heartbeat`: RFC 3339. Without `conditions`, headroom's conditions are removed.
HttpRequest conditions_apply(const std::string& node_name,
                             const std::optional<NodeConditions>& conditions,
                             const std::string& heartbeat);

// An Event of the node, as a kubelet's when a condition changes: in the namespace "default", where
// Events of objects without a namespace are. `state` must be known.
HttpRequest condition_event(const std::string& node_name, Condition condition,
                            const NodeCondition& state, const std::string& time);

// The request that adds missing taints of headroom and removes surplus ones; absent if the taints
// are correct. `node` is the server's response to node_get(). A taint whose condition is unknown
// stays as it is. Without `conditions`, headroom's taints are removed.
Result<std::optional<HttpRequest>> taints_patch(const std::string& node_name,
                                                const std::string& node,
                                                const std::optional<NodeConditions>& conditions);

// The kubelet's nodeStatusReportFrequency: unchanged conditions are written this seldom.
inline constexpr Duration kHeartbeat = std::chrono::minutes(5);
// How often taints are read: another writer of the list may have removed headroom's taints.
inline constexpr Duration kTaintsRecheckPeriod = std::chrono::minutes(1);

class NodeConditionSync {
 public:
  struct Options {
    std::string node_name;
    bool conditions = false;
    bool taints = false;
    bool events = false;  // one for each condition that changes, along with `conditions`
  };
  // `published`: what earlier runs left in the API.
  NodeConditionSync(Options options, PublishedOnNode published)
      : options_(std::move(options)), published_(published) {}

  // Sets headroomd's current conditions. Nothing is sent before they are known.
  void adopt(const NodeConditions& conditions) { conditions_ = conditions; }

  // When run_once() has something to do; absent if never in the current state.
  std::optional<Instant> due() const;

  // Does what is due, with at most three requests, and one for each condition that changed.
  NodeSyncResult run_once(Instant now, const std::string& heartbeat, double chance,
                          const Exchange& exchange);

  const PublishedOnNode& published() const { return published_; }

 private:
  struct Part {
    std::optional<NodeConditions> sent{};
    bool settled = false;  // true: the API has `sent`; false: unknown
    unsigned failures = 0;
    Instant next{};
  };
  bool wanted(bool enabled, bool left_behind) const;
  bool is_due(const Part& part, bool enabled, bool left_behind, Instant now) const;
  std::optional<NodeConditions> desired(bool enabled) const;
  NodeSyncResult patch_conditions(const std::string& heartbeat, const Exchange& exchange) const;
  NodeSyncResult patch_taints(const Exchange& exchange) const;
  NodeSyncResult send_events(const std::string& time, const Exchange& exchange);
  void record_response(Part& part, const NodeSyncResult& published, bool enabled, Duration again,
                       Instant now, double chance);

  Options options_;
  PublishedOnNode published_;
  std::optional<NodeConditions> conditions_;
  // Before the last change for which Events were sent; absent: none is known.
  std::optional<NodeConditions> before_;
  Part in_status_, in_spec_;
};

}  // namespace headroom::kube
