// SPDX-License-Identifier: Apache-2.0
// NodeConditionSync: keeps the node's conditions and taints in the API equal to headroomd's: sent
// when they change, and every few minutes as a heartbeat.
#pragma once

#include "kube/api/eviction_queue.h"
#include "kube/api/node_requests.h"
#include "kube/api/pending_eviction.h"
#include "kube/http_client.h"

#include <headroom/units.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace headroom::kube {

// The kubelet's nodeStatusReportFrequency: what nothing changes in is written this seldom.
inline constexpr Duration kHeartbeat = std::chrono::minutes(5);
// How often taints are read: another writer of the list may have dropped ours.
inline constexpr Duration kTaintsRecheckPeriod = std::chrono::minutes(1);

// One request and its answer.
using Exchange = std::function<Result<HttpResponse>(const HttpRequest&)>;

class NodeConditionSync {
 public:
  struct Options {
    std::string node_name;
    bool conditions = false;
    bool taints = false;
  };
  // `published`: what earlier processes left in the API.
  NodeConditionSync(Options options, PublishedOnNode published)
      : options_(std::move(options)), published_(published) {}

  // headroomd's current conditions. Nothing is sent before they are known.
  void adopt(const NodeConditions& conditions) { conditions_ = conditions; }

  // When turn() has something to do; nothing: never, as it is.
  std::optional<Instant> due() const;

  // Does what is due; at most three requests.
  struct SyncResult {
    ResponseClass response_class = ResponseClass::kDone;  // the worst of it
    std::optional<Duration> retry_after{};
    std::string why{};
    bool any = false;  // anything was asked
  };
  SyncResult run_once(Instant now, const std::string& heartbeat, double chance,
                      const Exchange& exchange);

  const PublishedOnNode& published() const { return published_; }

 private:
  struct Part {
    std::optional<NodeConditions> sent{};
    bool settled = false;  // `sent` is what the API has; false: not known
    unsigned failures = 0;
    Instant next{};
  };
  bool wanted(bool enabled, bool left_behind) const;
  bool is_due(const Part& part, bool enabled, bool left_behind, Instant now) const;
  std::optional<NodeConditions> desired(bool enabled) const;
  SyncResult patch_conditions(const std::string& heartbeat, const Exchange& exchange) const;
  SyncResult patch_taints(const Exchange& exchange) const;
  void record_response(Part& part, const SyncResult& published, bool enabled, Duration again,
                       Instant now, double chance);

  Options options_;
  PublishedOnNode published_;
  std::optional<NodeConditions> conditions_;
  Part in_status_, in_spec_;
};

}  // namespace headroom::kube
