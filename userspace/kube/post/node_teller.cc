// SPDX-License-Identifier: Apache-2.0
#include "kube/post/node_teller.h"

#include "kube/post/answers.h"
#include "kube/post/backoff.h"

#include <algorithm>

namespace headroom::kube {
namespace {

NodeTeller::Told told_of(const Result<HttpResponse>& response) {
  if (!response)
    return {.heard = Heard::kServer, .retry_after = {}, .why = response.error().what, .any = true};
  NodeTeller::Told told{.heard = Heard::kDone, .any = true};
  if (response->good()) return told;
  told.why = kube::told(*response);
  told.retry_after = retry_after(*response);
  if (server_in_trouble(*response))
    told.heard = Heard::kServer;
  else
    told.heard =
        response->status == 409 || response->status >= 500 ? Heard::kAgain : Heard::kRefused;
  return told;
}

}  // namespace

// Something is to be told, or to be taken back.
bool NodeTeller::wanted(bool enabled, bool left_behind) const {
  return enabled ? conditions_.has_value() : left_behind;
}

std::optional<NodeConditions> NodeTeller::aim(bool enabled) const {
  return enabled ? conditions_ : std::nullopt;
}

bool NodeTeller::is_due(const Part& part, bool enabled, bool left_behind, Instant now) const {
  if (!wanted(enabled, left_behind)) return false;
  // What changed is told at once, unless the last attempt failed.
  const bool news = part.failures == 0 && (!part.settled || part.sent != aim(enabled));
  return news || part.next <= now;
}

std::optional<Instant> NodeTeller::due() const {
  std::optional<Instant> first;
  const auto consider = [&](const Part& part, bool enabled, bool left_behind) {
    if (!wanted(enabled, left_behind)) return;
    const Instant at = is_due(part, enabled, left_behind, Instant{}) ? Instant{} : part.next;
    first = first ? std::min(*first, at) : at;
  };
  consider(in_status_, terms_.conditions, told_.conditions);
  consider(in_spec_, terms_.taints, told_.taints);
  return first;
}

NodeTeller::Told NodeTeller::tell_conditions(const std::string& heartbeat,
                                             const Exchange& exchange) const {
  return told_of(exchange(conditions_apply(terms_.node_name, aim(terms_.conditions), heartbeat)));
}

NodeTeller::Told NodeTeller::tell_taints(const Exchange& exchange) const {
  const auto node = exchange(node_question(terms_.node_name));
  Told told = told_of(node);
  if (told.heard != Heard::kDone) return told;
  const auto patch = taints_patch(terms_.node_name, node->body, aim(terms_.taints));
  if (!patch) return {.heard = Heard::kAgain, .why = patch.error().what, .any = true};
  if (!*patch) return told;  // they are right
  return told_of(exchange(**patch));
}

void NodeTeller::settle(Part& part, const Told& told, bool enabled, Duration again, Instant now,
                        double chance) {
  if (told.heard == Heard::kDone) {
    part = {.sent = aim(enabled), .settled = true, .failures = 0, .next = now + again};
    return;
  }
  ++part.failures;
  const Duration wait = wait_after(part.failures, chance, told.retry_after);
  part.next = now + (told.heard == Heard::kRefused ? std::max(wait, kRefusedWait) : wait);
}

NodeTeller::Told NodeTeller::turn(Instant now, const std::string& heartbeat, double chance,
                                  const Exchange& exchange) {
  Told all;
  const auto take = [&](Part& part, bool enabled, bool& left_behind, Duration again, Told told) {
    settle(part, told, enabled, again, now, chance);
    // From the first attempt on it may be there, whatever was heard of it.
    left_behind = enabled || told.heard != Heard::kDone;
    if (all.heard == Heard::kDone) all = told;
    all.any = true;
  };
  if (is_due(in_status_, terms_.conditions, told_.conditions, now))
    take(in_status_, terms_.conditions, told_.conditions, kHeartbeat,
         tell_conditions(heartbeat, exchange));
  if (all.heard == Heard::kServer) return all;
  if (is_due(in_spec_, terms_.taints, told_.taints, now))
    take(in_spec_, terms_.taints, told_.taints, kTaintsReadAgain, tell_taints(exchange));
  return all;
}

}  // namespace headroom::kube
