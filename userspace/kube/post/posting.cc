// SPDX-License-Identifier: Apache-2.0
#include "kube/post/posting.h"

#include "kube/post/answers.h"
#include "kube/post/backoff.h"
#include "kube/post/json_text.h"
#include "kube/post/pod_requests.h"

#include <algorithm>
#include <utility>

namespace headroom::kube {
namespace {

using After = config::ApiConfig::After;

constexpr std::array<Step, kSteps> kOrder{Step::kStatus, Step::kAct, Step::kEvent};

bool open(const Posting& posting, Step step, const PostingTerms& terms) {
  return wanted(step, terms) && !posting.at(step).done;
}

// The act waits for the status, within reason.
bool held_up(const Posting& posting, Step step, const PostingTerms& terms) {
  if (step != Step::kAct || !open(posting, Step::kStatus, terms)) return false;
  const StepState& status = posting.at(Step::kStatus);
  return !status.refused && status.failures < kPatience;
}

void pod_is_gone(Posting& posting) {
  posting.in_doubt = false;
  posting.at(Step::kStatus).done = true;
  posting.at(Step::kAct).done = true;
}

void put_off(StepState& state, const Answer& answer, Instant now, double chance) {
  ++state.failures;
  state.refused = answer.heard == Heard::kRefused;
  const Duration wait = wait_after(state.failures, chance, answer.retry_after);
  state.not_before = now + (state.refused ? std::max(wait, kRefusedWait) : wait);
}

// Of a GET of the pod, after something contradicted us.
Heard heard_of_pod(Posting& posting, const HttpResponse& response) {
  if (not_found(response)) return Heard::kGone;
  if (!response.good()) return response.status < 500 ? Heard::kRefused : Heard::kAgain;
  const auto pod = nlohmann::json::parse(response.body, nullptr, /*allow_exceptions=*/false);
  const auto uid =
      pod.is_object() && pod.contains("metadata") ? text_at(pod["metadata"], "uid") : std::string();
  if (uid.empty()) return Heard::kAgain;
  posting.in_doubt = false;
  return uid == posting.evicted.uid ? Heard::kAgain : Heard::kGone;
}

Heard heard_of_event(Posting& posting, const HttpResponse& response) {
  const bool made = posting.event_made;
  // Made by a life of ours that did not come to write it down.
  if (!made && response.status == 409 && api_status(response).reason == "AlreadyExists") {
    posting.event_made = true;
    return posting.count > 1 ? Heard::kAgain : Heard::kDone;
  }
  if (response.good()) {
    posting.event_made = true;
    return Heard::kDone;
  }
  if (not_found(response)) {
    if (!made) return Heard::kDone;  // the namespace is gone, and its Events with it
    posting.event_made = false;      // Events live for an hour
    return Heard::kAgain;
  }
  return response.status < 500 && response.status != 409 ? Heard::kRefused : Heard::kAgain;
}

// Of the status and the act.
Heard heard_of_change(Posting& posting, Step step, const HttpResponse& response) {
  if (response.good()) return Heard::kDone;
  if (not_found(response)) return Heard::kGone;
  // Another uid by that name is a conflict or an invalid change, by the server's version.
  if (response.status == 409 || response.status == 422) {
    posting.in_doubt = true;
    return Heard::kAgain;
  }
  if (step == Step::kAct && (response.status == 400 || response.status == 404)) {
    posting.old_eviction = !posting.old_eviction;
    if (posting.old_eviction) return Heard::kAgain;  // in the other words, and at once
  }
  return response.status < 500 ? Heard::kRefused : Heard::kAgain;
}

// A disruption budget's no is about this pod alone.
bool of_a_budget(Step step, const Posting& posting, const HttpResponse& response) {
  return step == Step::kAct && !posting.in_doubt && response.status == 429;
}

Heard heard(Posting& posting, Step step, const HttpResponse& response) {
  if (of_a_budget(step, posting, response)) return Heard::kAgain;
  if (server_in_trouble(response)) return Heard::kServer;
  if (posting.in_doubt && step != Step::kEvent) return heard_of_pod(posting, response);
  return step == Step::kEvent ? heard_of_event(posting, response)
                              : heard_of_change(posting, step, response);
}

}  // namespace

Posting posting_of(Evicted evicted) {
  Posting posting;
  posting.first_time = evicted.time;
  posting.first_stamp = evicted.stamp;
  posting.evicted = std::move(evicted);
  return posting;
}

void evicted_again(Posting& posting, Evicted evicted) {
  posting.evicted = std::move(evicted);
  ++posting.count;
  posting.in_doubt = false;
  posting.steps = {};
}

bool wanted(Step step, const PostingTerms& terms) {
  switch (step) {
    case Step::kStatus:
      return terms.after != After::kNone;
    case Step::kAct:
      return terms.after == After::kEvict || terms.after == After::kDelete;
    case Step::kEvent:
      return terms.after != After::kNone && terms.events;
  }
  return false;
}

bool finished(const Posting& posting, const PostingTerms& terms) {
  return std::none_of(kOrder.begin(), kOrder.end(),
                      [&](Step step) { return open(posting, step, terms); });
}

std::optional<Step> next_step(const Posting& posting, const PostingTerms& terms, Instant now) {
  for (const Step step : kOrder)
    if (open(posting, step, terms) && !held_up(posting, step, terms) &&
        posting.at(step).not_before <= now)
      return step;
  return std::nullopt;
}

std::optional<Instant> due(const Posting& posting, const PostingTerms& terms) {
  std::optional<Instant> first;
  for (const Step step : kOrder) {
    if (!open(posting, step, terms) || held_up(posting, step, terms)) continue;
    const Instant at = posting.at(step).not_before;
    first = first ? std::min(*first, at) : at;
  }
  return first;
}

HttpRequest request_for(const Posting& posting, Step step, const PostingTerms& terms) {
  switch (step) {
    case Step::kStatus:
      return posting.in_doubt ? pod_question(posting) : pod_status_patch(posting);
    case Step::kAct:
      if (posting.in_doubt) return pod_question(posting);
      return terms.after == After::kEvict ? pod_eviction(posting) : pod_deletion(posting);
    case Step::kEvent:
      return posting.event_made ? event_patch(posting) : event_creation(posting, terms);
  }
  return {};
}

Answer settle(Posting& posting, Step step, const Result<HttpResponse>& response, Instant now,
              double chance) {
  if (!response) return {.heard = Heard::kServer, .retry_after = {}, .why = response.error().what};
  Answer answer{.heard = heard(posting, step, *response),
                .retry_after = retry_after(*response),
                .why = response->good() ? "" : told(*response)};
  switch (answer.heard) {
    case Heard::kDone:
      posting.at(step) = {.done = true};
      break;
    case Heard::kGone:
      pod_is_gone(posting);
      break;
    case Heard::kAgain:
    case Heard::kRefused:
      put_off(posting.at(step), answer, now, chance);
      break;
    case Heard::kServer:
      break;  // the server as a whole is left alone
  }
  return answer;
}

}  // namespace headroom::kube
