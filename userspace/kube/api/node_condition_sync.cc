// SPDX-License-Identifier: Apache-2.0
#include "kube/api/node_condition_sync.h"

#include "kube/api/api_response.h"
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

std::string node_path(const std::string& node_name) {
  return "/api/v1/nodes/" + escaped(node_name);
}

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

std::optional<std::size_t> own_condition_of(const Json& taint) {
  if (!taint.is_object()) return std::nullopt;
  for (std::size_t i = 0; i < kConditions; ++i)
    if (taint.value("key", "") == kTaintKeys[i]) return i;
  return std::nullopt;
}

// Taints of other owners unchanged and in their order, then headroom's.
Json wanted_taints(const Json& there, const std::optional<NodeConditions>& conditions) {
  Json wanted = Json::array();
  std::array<bool, kConditions> had{};
  for (const Json& taint : there) {
    const auto condition = own_condition_of(taint);
    if (condition)
      had[*condition] = true;
    else
      wanted.push_back(taint);
  }
  for (std::size_t i = 0; conditions && i < kConditions; ++i)
    if ((*conditions)[i].holds.value_or(had[i]))
      wanted.push_back({{"key", kTaintKeys[i]}, {"effect", "NoSchedule"}});
  return wanted;
}

// The server may have added timeAdded to headroom's taints, or reordered them: only the set counts.
bool same_taints(const Json& there, const Json& wanted) {
  const auto keys = [](const Json& taints) {
    std::array<bool, kConditions> found{};
    for (const Json& taint : taints)
      if (const auto condition = own_condition_of(taint)) found[*condition] = true;
    return found;
  };
  return there.size() == wanted.size() && keys(there) == keys(wanted);
}

// Throws an exception of the JSON library if the response is not a Node.
std::optional<HttpRequest> taints_patch_of(const std::string& node_name, const Json& node,
                                           const std::optional<NodeConditions>& conditions) {
  const std::string version = node.at("metadata").at("resourceVersion");
  const Json& spec = node.at("spec");
  const Json there = spec.contains("taints") ? spec.at("taints") : Json::array();
  Json wanted = wanted_taints(there, conditions);
  if (same_taints(there, wanted)) return std::nullopt;
  const Json patch{{"metadata", {{"resourceVersion", version}}},
                   {"spec", {{"taints", std::move(wanted)}}}};
  return HttpRequest{.method = "PATCH",
                     .path = node_path(node_name) + "?fieldManager=" + std::string(kManager),
                     .headers = {{"Content-Type", "application/merge-patch+json"}},
                     .body = to_json_text(patch)};
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

HttpRequest node_get(const std::string& node_name) {
  return {.method = "GET", .path = node_path(node_name)};
}

Result<std::optional<HttpRequest>> taints_patch(const std::string& node_name,
                                                const std::string& node,
                                                const std::optional<NodeConditions>& conditions) {
  try {
    return taints_patch_of(node_name, Json::parse(node), conditions);
  } catch (const std::exception& thrown) {  // thrown by the JSON library
    return failure(std::string("read the node's taints: ") + thrown.what());
  }
}

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

// A condition that was unknown has not changed. An Event that fails is not sent again: the
// condition itself is.
NodeConditionSync::SyncResult NodeConditionSync::send_events(const std::string& time,
                                                             const Exchange& exchange) {
  SyncResult all;
  const std::optional<NodeConditions> before = std::exchange(before_, conditions_);
  if (!options_.events || !before || !conditions_) return all;
  for (std::size_t i = 0; i < kConditions; ++i) {
    const NodeCondition& now = (*conditions_)[i];
    const bool changed = now.holds && (*before)[i].holds && *now.holds != *(*before)[i].holds;
    if (!changed) continue;
    const SyncResult result = classify_node_response(
        exchange(condition_event(options_.node_name, static_cast<Condition>(i), now, time)));
    if (all.response_class == ResponseClass::kDone) all = result;
  }
  return all;
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
  if (is_due(in_status_, options_.conditions, published_.conditions, now)) {
    take(in_status_, options_.conditions, published_.conditions, kHeartbeat,
         patch_conditions(heartbeat, exchange));
    if (all.response_class == ResponseClass::kDone)
      if (SyncResult events = send_events(heartbeat, exchange);
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
