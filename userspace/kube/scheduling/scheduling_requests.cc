// SPDX-License-Identifier: Apache-2.0
#include "kube/scheduling/scheduling_requests.h"

#include "base/json_text.h"
#include "kube/api/api_response.h"
#include "kube/api/node_taints.h"
#include "kube/scheduling/batch_resources.h"
#include "kube/scheduling/node_summary.h"

#include <headroom/quantity.h>

#include <array>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

namespace headroom::kube {
namespace {

using Json = nlohmann::ordered_json;

struct AdviceText {
  std::string_view reason, message;
};
constexpr std::array<AdviceText, kAdvices> kHolds{
    {{"HeadroomHasMemoryContention", "pods lose time because the node is short of memory"},
     {"HeadroomHasCPUContention", "pods lose time because the node is short of CPU"},
     {"HeadroomExpectsShortage", "headroomd forecasts that the node will be short of a resource"}}};
constexpr std::array<AdviceText, kAdvices> kHoldsNot{
    {{"HeadroomHasNoMemoryContention", "pods lose little time to a shortage of memory"},
     {"HeadroomHasNoCPUContention", "pods lose little time to a shortage of CPU"},
     {"HeadroomExpectsNoShortage", "headroomd forecasts no shortage"}}};
constexpr AdviceText kUnknown{"HeadroomStatusUnknown", "headroomd does not report it"};

Json condition_json(std::size_t advice, const AdviceState& state, const std::string& heartbeat) {
  const AdviceText& text = !state.known  ? kUnknown
                           : state.holds ? kHolds[advice]
                                         : kHoldsNot[advice];
  return {{"type", kAdviceConditionTypes[advice]},
          {"status", !state.known  ? "Unknown"
                     : state.holds ? "True"
                                   : "False"},
          {"lastHeartbeatTime", heartbeat},
          {"lastTransitionTime", state.since},
          {"reason", text.reason},
          {"message", text.message}};
}

Json batch_json(const BatchAmounts& batch) {
  return {{kBatchMemory, std::to_string(batch.memory.count)},
          {kBatchCpu, std::to_string(batch.cpu.count)}};
}

// The amounts are whole numbers without a suffix, which the API server keeps as they are, but for
// those that it writes shorter: "5k".
bool is_amount(const nlohmann::json& list, const char* resource, std::int64_t amount) {
  const std::string text = text_at(list, resource);
  const auto quantity = Quantity::parse(text);
  return quantity && quantity->value() == amount;
}

}  // namespace

bool has_batch(const std::string& node, const BatchAmounts& batch) {
  const auto json = nlohmann::json::parse(node, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("status") || !json["status"].is_object()) return false;
  for (const char* key : {"capacity", "allocatable"}) {
    if (!json["status"].contains(key)) return false;
    const nlohmann::json& list = json["status"][key];
    if (!is_amount(list, kBatchMemory, batch.memory.count) ||
        !is_amount(list, kBatchCpu, batch.cpu.count))
      return false;
  }
  return true;
}

Result<std::optional<HttpRequest>> soft_taints_patch(const std::string& node_name,
                                                     const std::string& node,
                                                     const std::optional<AdviceStates>& advice) {
  std::array<OwnTaint, kAdvices> own;
  for (std::size_t i = 0; i < kAdvices; ++i) {
    own[i] = {.key = kAdviceTaintKeys[i], .effect = "PreferNoSchedule", .wanted = false};
    if (!advice) continue;
    const AdviceState& state = (*advice)[i];
    own[i].wanted = state.known ? std::optional(state.holds) : std::nullopt;
  }
  return own_taints_patch(node_name, node, own);
}

HttpRequest annotation_patch(const std::string& node_name, const std::string& text) {
  const Json patch{
      {"metadata",
       {{"annotations", {{kSummaryAnnotation, text.empty() ? Json(nullptr) : Json(text)}}}}}};
  return {.method = "PATCH",
          .path = node_path(node_name) + "?fieldManager=" + std::string(kSchedulingManager),
          .headers = {{"Content-Type", "application/merge-patch+json"}},
          .body = to_json_text(patch)};
}

HttpRequest scheduling_apply(const std::string& node_name,
                             const std::optional<AdviceStates>& advice,
                             const std::optional<BatchAmounts>& batch,
                             const std::string& heartbeat) {
  Json node{{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", node_name}}}};
  if (advice) {
    Json conditions = Json::array();
    for (std::size_t i = 0; i < kAdvices; ++i)
      conditions.push_back(condition_json(i, (*advice)[i], heartbeat));
    node["status"]["conditions"] = std::move(conditions);
  }
  if (batch)
    for (const char* key : {"capacity", "allocatable"})
      node["status"][key] = batch_json(*batch);
  // Forced: these condition types and resources have no other owner but a kubelet that sets unknown
  // resources to zero.
  return {.method = "PATCH",
          .path = node_path(node_name) + "/status?fieldManager=" + std::string(kSchedulingManager) +
                  "&force=true",
          .headers = {{"Content-Type", "application/apply-patch+yaml"}},
          .body = to_json_text(node)};
}

}  // namespace headroom::kube
