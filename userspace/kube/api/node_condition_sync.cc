// SPDX-License-Identifier: Apache-2.0
#include "kube/api/node_condition_sync.h"

#include "base/json_text.h"
#include "kube/api/api_response.h"
#include "kube/api/node_taints.h"
#include "kube/api/pod_requests.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <nlohmann/json.hpp>

namespace headroom::kube {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, kConditions> kTypes{
    "HeadroomMemoryPressure", "HeadroomDiskPressure", "HeadroomPIDPressure", "HeadroomCPUPressure"};
constexpr std::array<std::string_view, kConditions> kTaintKeys{
    "headroom.io/memory-pressure", "headroom.io/disk-pressure", "headroom.io/pid-pressure",
    "headroom.io/cpu-pressure"};

struct ConditionText {
  std::string_view reason, message;
};
// Worded like the kubelet's own conditions.
constexpr std::array<ConditionText, kConditions> kBad{
    {{"HeadroomHasInsufficientMemory", "headroomd sees insufficient memory available"},
     {"HeadroomHasDiskPressure", "headroomd sees disk pressure"},
     {"HeadroomHasInsufficientPID", "headroomd sees insufficient PID available"},
     {"HeadroomHasInsufficientCPU", "headroomd sees pods wait because the node has no CPU left"}}};
constexpr std::array<ConditionText, kConditions> kGood{
    {{"HeadroomHasSufficientMemory", "headroomd sees sufficient memory available"},
     {"HeadroomHasNoDiskPressure", "headroomd sees no disk pressure"},
     {"HeadroomHasSufficientPID", "headroomd sees sufficient PID available"},
     {"HeadroomHasSufficientCPU", "headroomd sees sufficient CPU available"}}};
constexpr ConditionText kUnknown{"HeadroomStatusUnknown",
                                 "headroomd stopped reporting node status"};

ConditionText text_of_condition(std::size_t condition, const NodeCondition& state) {
  if (!state.holds) return kUnknown;
  return *state.holds ? kBad[condition] : kGood[condition];
}

Json condition_json(std::size_t condition, const NodeCondition& state,
                    const std::string& heartbeat) {
  const ConditionText text = text_of_condition(condition, state);
  const bool holds = state.holds.value_or(false);
  return {{"type", kTypes[condition]},
          {"status", !state.holds ? "Unknown" : holds ? "True" : "False"},
          {"lastHeartbeatTime", heartbeat},
          {"lastTransitionTime", state.since},
          {"reason", text.reason},
          {"message", text.message}};
}

NodeConditions conditions_of_json(const Json& node) {
  NodeConditions conditions;
  for (const Json& reported : node.at("status").at("conditions"))
    for (std::size_t i = 0; i < kConditions; ++i) {
      if (reported.at("type") != kConditionNames[i]) continue;
      const std::string status = reported.at("status");
      if (status == "True" || status == "False") conditions[i].holds = status == "True";
      conditions[i].since = reported.at("lastTransitionTime");
    }
  return conditions;
}

}  // namespace

std::string_view condition_type(Condition condition) {
  return kTypes[static_cast<std::size_t>(condition)];
}

std::string_view taint_key(Condition condition) {
  return kTaintKeys[static_cast<std::size_t>(condition)];
}

Result<NodeConditions> conditions_of(const std::string& node_json) {
  try {
    return conditions_of_json(Json::parse(node_json));
  } catch (const std::exception& thrown) {  // thrown by the JSON library
    return failure(std::string("read the node's status: ") + thrown.what());
  }
}

HttpRequest conditions_apply(const std::string& node_name,
                             const std::optional<NodeConditions>& conditions,
                             const std::string& heartbeat) {
  Json list = Json::array();
  for (std::size_t i = 0; conditions && i < kConditions; ++i)
    // One that an older headroomd does not know is left out: it has no time of its last change.
    if (!(*conditions)[i].since.empty())
      list.push_back(condition_json(i, (*conditions)[i], heartbeat));
  Json node{{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", node_name}}}};
  if (!list.empty()) node["status"] = {{"conditions", std::move(list)}};
  // Forced: these condition types have no other owner.
  return {.method = "PATCH",
          .path = node_path(node_name) + "/status?fieldManager=" + std::string(kManager) +
                  "&force=true",
          .headers = {{"Content-Type", "application/apply-patch+yaml"}},
          .body = to_json_text(node)};
}

HttpRequest condition_event(const std::string& node_name, Condition condition,
                            const NodeCondition& state, const std::string& time) {
  const ConditionText text = text_of_condition(static_cast<std::size_t>(condition), state);
  const Json event{{"apiVersion", "v1"},
                   {"kind", "Event"},
                   {"metadata", {{"generateName", node_name + "."}, {"namespace", "default"}}},
                   {"involvedObject",
                    {{"apiVersion", "v1"},
                     {"kind", "Node"},
                     {"name", node_name},
                     {"uid", node_name}}},  // as the kubelet has it: kubectl describe finds it so
                   {"type", state.holds.value_or(false) ? "Warning" : "Normal"},
                   {"reason", text.reason},
                   {"message", text.message},
                   {"source", {{"component", kManager}, {"host", node_name}}},
                   {"firstTimestamp", time},
                   {"lastTimestamp", time},
                   {"count", 1},
                   {"reportingComponent", kManager},
                   {"reportingInstance", node_name}};
  return {.method = "POST",
          .path = "/api/v1/namespaces/default/events?fieldManager=" + std::string(kManager),
          .headers = {{"Content-Type", "application/json"}},
          .body = to_json_text(event)};
}

Result<std::optional<HttpRequest>> taints_patch(const std::string& node_name,
                                                const std::string& node,
                                                const std::optional<NodeConditions>& conditions) {
  std::array<OwnTaint, kConditions> own;
  for (std::size_t i = 0; i < kConditions; ++i)
    own[i] = {.key = kTaintKeys[i],
              .effect = "NoSchedule",
              .wanted = conditions ? (*conditions)[i].holds : std::optional(false)};
  return own_taints_patch(node_name, node, own);
}

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

NodeSyncResult NodeConditionSync::patch_conditions(const std::string& heartbeat,
                                                   const Exchange& exchange) const {
  return classify_node_response(
      exchange(conditions_apply(options_.node_name, desired(options_.conditions), heartbeat)));
}

NodeSyncResult NodeConditionSync::patch_taints(const Exchange& exchange) const {
  const auto node = exchange(node_get(options_.node_name));
  NodeSyncResult result = classify_node_response(node);
  if (result.response_class != ResponseClass::kDone) return result;
  const auto patch = taints_patch(options_.node_name, node->body, desired(options_.taints));
  if (!patch)
    return {.response_class = ResponseClass::kRetry, .why = patch.error().what, .any = true};
  if (!*patch) return result;  // the taints are correct
  return classify_node_response(exchange(**patch));
}

// A condition that was unknown has not changed. An Event that fails is not sent again: the
// condition itself is.
NodeSyncResult NodeConditionSync::send_events(const std::string& time, const Exchange& exchange) {
  NodeSyncResult all;
  const std::optional<NodeConditions> before = std::exchange(before_, conditions_);
  if (!options_.events || !before || !conditions_) return all;
  for (std::size_t i = 0; i < kConditions; ++i) {
    const NodeCondition& now = (*conditions_)[i];
    const bool changed = now.holds && (*before)[i].holds && *now.holds != *(*before)[i].holds;
    if (!changed) continue;
    const NodeSyncResult result = classify_node_response(
        exchange(condition_event(options_.node_name, static_cast<Condition>(i), now, time)));
    if (all.response_class == ResponseClass::kDone) all = result;
  }
  return all;
}

void NodeConditionSync::record_response(Part& part, const NodeSyncResult& result, bool enabled,
                                        Duration again, Instant now, double chance) {
  if (result.response_class == ResponseClass::kDone) {
    part = {.sent = desired(enabled), .settled = true, .failures = 0, .next = now + again};
    return;
  }
  const bool refused = result.response_class == ResponseClass::kRefused;
  part.next = now + wait_after_failure(refused, ++part.failures, chance, result.retry_after);
}

NodeSyncResult NodeConditionSync::run_once(Instant now, const std::string& heartbeat, double chance,
                                           const Exchange& exchange) {
  NodeSyncResult all;
  const auto take = [&](Part& part, bool enabled, bool& left_behind, Duration again,
                        NodeSyncResult result) {
    record_response(part, result, enabled, again, now, chance);
    // After the first attempt the conditions or taints may exist on the server, whatever the
    // response was.
    left_behind = enabled || result.response_class != ResponseClass::kDone;
    if (all.response_class == ResponseClass::kDone) all = result;
    all.any = true;
  };
  if (is_due(in_status_, options_.conditions, published_.conditions, now)) {
    take(in_status_, options_.conditions, published_.conditions, kHeartbeat,
         patch_conditions(heartbeat, exchange));
    if (all.response_class == ResponseClass::kDone)
      if (NodeSyncResult events = send_events(heartbeat, exchange);
          events.response_class != ResponseClass::kDone)
        all = std::move(events);
  }
  if (all.response_class == ResponseClass::kServerError) return all;
  if (is_due(in_spec_, options_.taints, published_.taints, now))
    take(in_spec_, options_.taints, published_.taints, kTaintsRecheckPeriod,
         patch_taints(exchange));
  return all;
}

}  // namespace headroom::kube
