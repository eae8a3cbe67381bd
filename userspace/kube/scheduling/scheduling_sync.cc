// SPDX-License-Identifier: Apache-2.0
#include "kube/scheduling/scheduling_sync.h"

#include "kube/api/api_response.h"
#include "kube/api/node_taints.h"
#include "kube/scheduling/scheduling_requests.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <nlohmann/json.hpp>

namespace headroom::kube {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

std::string as_text(const SchedulingState& state) {
  Json advice = Json::object();
  for (std::size_t i = 0; i < kAdvices; ++i)
    advice[std::string(kAdviceTaintKeys[i])] = {{"holds", state.advice[i].holds},
                                                {"known", state.advice[i].known},
                                                {"since", state.advice[i].since}};
  return to_json_text({{"taints", state.taints},
                       {"conditions", state.conditions},
                       {"advice", std::move(advice)}}) +
         "\n";
}

Result<SchedulingState> scheduling_state_of(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    SchedulingState state;
    state.taints = json.at("taints").get<bool>();
    state.conditions = json.at("conditions").get<bool>();
    for (std::size_t i = 0; i < kAdvices; ++i) {
      const Json& advice = json.at("advice").at(std::string(kAdviceTaintKeys[i]));
      state.advice[i] = {.holds = advice.at("holds").get<bool>(),
                         .since = advice.at("since").get<std::string>(),
                         .known = advice.at("known").get<bool>()};
    }
    return state;
  } catch (const std::exception& thrown) {  // thrown by the JSON library
    return failure(thrown.what());
  }
}

SchedulingSync::SchedulingSync(SchedulingOptions options, const SchedulingState& state)
    : options_(std::move(options)), state_(state), advice_(options_.advice, state.advice) {
  // Noted before the first write: a crash after it leaves something there.
  state_.taints |= options_.taints;
  state_.conditions |= options_.conditions;
}

void SchedulingSync::observe(const std::optional<NodeSignals>& signals, Instant at,
                             const std::string& time) {
  // The program that ran before may have written just now.
  if (next_write_ == Instant{}) next_write_ = at + kWritePeriod;
  advice_.update(signals, at, time);
  state_.advice = advice_.states();
}

std::optional<AdviceStates> SchedulingSync::desired(bool enabled) const {
  return enabled ? std::optional(advice_.states()) : std::nullopt;
}

// At first nothing is known, and nothing is written, so that what an earlier run wrote stays.
bool SchedulingSync::has_known_advice() const {
  return std::ranges::any_of(advice_.states(), &AdviceState::known);
}

bool SchedulingSync::is_due(const Part& part, bool enabled, bool left_behind, Instant now) const {
  if (!(enabled ? part.settled || has_known_advice() : left_behind)) return false;
  if (now < next_write_) return false;
  const bool news = part.failures == 0 && (!part.settled || part.sent != desired(enabled));
  return news || part.next <= now;
}

NodeSyncResult SchedulingSync::write(Part& part, const HttpRequest& request, Instant now,
                                     const Exchange& exchange) {
  next_write_ = now + kWritePeriod;
  ++part.writes;
  return classify_node_response(exchange(request));
}

NodeSyncResult SchedulingSync::patch_taints(Instant now, const Exchange& exchange) {
  const auto node = exchange(node_get(options_.node_name));
  const NodeSyncResult result = classify_node_response(node);
  if (result.response_class != ResponseClass::kDone) return result;
  const auto patch = soft_taints_patch(options_.node_name, node->body, desired(options_.taints));
  if (!patch)
    return {.response_class = ResponseClass::kRetry, .why = patch.error().what, .any = true};
  if (!*patch) return result;  // the taints are correct
  return write(taints_, **patch, now, exchange);
}

void SchedulingSync::record(Part& part, const NodeSyncResult& result, bool enabled, Duration again,
                            Instant now, double chance) {
  if (result.response_class == ResponseClass::kDone) {
    part.sent = desired(enabled);
    part.settled = true;
    part.failures = 0;
    part.next = now + again;
    return;
  }
  ++part.failures;
  const Duration wait = wait_after(part.failures, chance, result.retry_after);
  part.next =
      now +
      (result.response_class == ResponseClass::kRefused ? std::max(wait, kRefusedRetryWait) : wait);
}

NodeSyncResult SchedulingSync::run_once(Instant now, const std::string& time, double chance,
                                        const Exchange& exchange) {
  NodeSyncResult all;
  const auto take = [&](Part& part, bool enabled, bool& left_behind, Duration again,
                        NodeSyncResult result) {
    record(part, result, enabled, again, now, chance);
    // After the first attempt it may be on the server, whatever the response was.
    left_behind = enabled || result.response_class != ResponseClass::kDone;
    all = std::move(result);
  };
  if (is_due(taints_, options_.taints, state_.taints, now))
    take(taints_, options_.taints, state_.taints, kRecheckPeriod, patch_taints(now, exchange));
  if (all.response_class != ResponseClass::kServerError &&
      is_due(status_, options_.conditions, state_.conditions, now))
    take(status_, options_.conditions, state_.conditions, kHeartbeat,
         write(status_, scheduling_apply(options_.node_name, desired(options_.conditions), time),
               now, exchange));
  return all;
}

}  // namespace headroom::kube
