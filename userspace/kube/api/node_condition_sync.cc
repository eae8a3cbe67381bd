// SPDX-License-Identifier: Apache-2.0
#include "kube/api/node_condition_sync.h"

#include "kube/api/api_response.h"
#include "kube/api/retry_backoff.h"

#include <algorithm>

namespace headroom::kube {
namespace {

NodeConditionSync::SyncResult classify_node_response(const Result<HttpResponse>& response) {
  if (!response)
    return {.response_class = ResponseClass::kServerError,
            .retry_after = {},
            .why = response.error().what,
            .any = true};
  NodeConditionSync::SyncResult result{.response_class = ResponseClass::kDone, .any = true};
  if (response->good()) return result;
  result.why = kube::error_text(*response);
  result.retry_after = retry_after(*response);
  if (is_server_error(*response))
    result.response_class = ResponseClass::kServerError;
  else
    result.response_class = response->status == 409 || response->status >= 500
                                ? ResponseClass::kRetry
                                : ResponseClass::kRefused;
  return result;
}

}  // namespace

// Whether something has to be published or removed.
bool NodeConditionSync::wanted(bool enabled, bool left_behind) const {
  return enabled ? conditions_.has_value() : left_behind;
}

std::optional<NodeConditions> NodeConditionSync::desired(bool enabled) const {
  return enabled ? conditions_ : std::nullopt;
}

bool NodeConditionSync::is_due(const Part& part, bool enabled, bool left_behind,
                               Instant now) const {
  if (!wanted(enabled, left_behind)) return false;
  // A change is sent at once, unless the last attempt failed.
  const bool news = part.failures == 0 && (!part.settled || part.sent != desired(enabled));
  return news || part.next <= now;
}

std::optional<Instant> NodeConditionSync::due() const {
  std::optional<Instant> first;
  const auto consider = [&](const Part& part, bool enabled, bool left_behind) {
    if (!wanted(enabled, left_behind)) return;
    const Instant at = is_due(part, enabled, left_behind, Instant{}) ? Instant{} : part.next;
    first = first ? std::min(*first, at) : at;
  };
  consider(in_status_, options_.conditions, published_.conditions);
  consider(in_spec_, options_.taints, published_.taints);
  return first;
}

NodeConditionSync::SyncResult NodeConditionSync::patch_conditions(const std::string& heartbeat,
                                                                  const Exchange& exchange) const {
  return classify_node_response(
      exchange(conditions_apply(options_.node_name, desired(options_.conditions), heartbeat)));
}

NodeConditionSync::SyncResult NodeConditionSync::patch_taints(const Exchange& exchange) const {
  const auto node = exchange(node_get(options_.node_name));
  SyncResult result = classify_node_response(node);
  if (result.response_class != ResponseClass::kDone) return result;
  const auto patch = taints_patch(options_.node_name, node->body, desired(options_.taints));
  if (!patch)
    return {.response_class = ResponseClass::kRetry, .why = patch.error().what, .any = true};
  if (!*patch) return result;  // the taints are correct
  return classify_node_response(exchange(**patch));
}

void NodeConditionSync::record_response(Part& part, const SyncResult& result, bool enabled,
                                        Duration again, Instant now, double chance) {
  if (result.response_class == ResponseClass::kDone) {
    part = {.sent = desired(enabled), .settled = true, .failures = 0, .next = now + again};
    return;
  }
  ++part.failures;
  const Duration wait = wait_after(part.failures, chance, result.retry_after);
  part.next =
      now +
      (result.response_class == ResponseClass::kRefused ? std::max(wait, kRefusedRetryWait) : wait);
}

NodeConditionSync::SyncResult NodeConditionSync::run_once(Instant now, const std::string& heartbeat,
                                                          double chance, const Exchange& exchange) {
  SyncResult all;
  const auto take = [&](Part& part, bool enabled, bool& left_behind, Duration again,
                        SyncResult result) {
    record_response(part, result, enabled, again, now, chance);
    // After the first attempt the conditions or taints may exist on the server, whatever the
    // response was.
    left_behind = enabled || result.response_class != ResponseClass::kDone;
    if (all.response_class == ResponseClass::kDone) all = result;
    all.any = true;
  };
  if (is_due(in_status_, options_.conditions, published_.conditions, now))
    take(in_status_, options_.conditions, published_.conditions, kHeartbeat,
         patch_conditions(heartbeat, exchange));
  if (all.response_class == ResponseClass::kServerError) return all;
  if (is_due(in_spec_, options_.taints, published_.taints, now))
    take(in_spec_, options_.taints, published_.taints, kTaintsRecheckPeriod,
         patch_taints(exchange));
  return all;
}

}  // namespace headroom::kube
