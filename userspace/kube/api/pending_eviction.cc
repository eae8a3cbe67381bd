// SPDX-License-Identifier: Apache-2.0
#include "kube/api/pending_eviction.h"

#include "base/clock.h"
#include "base/json_text.h"
#include "kube/api/api_response.h"
#include "kube/api/pod_requests.h"

#include <algorithm>
#include <string>
#include <utility>

#include <spdlog/fmt/fmt.h>

namespace headroom::kube {
namespace {

// Versions up to 0.1 wrote "outlasting" for "timed_out".
bool died(const nlohmann::json& line) {
  const std::string outcome = text_at(line, "outcome");
  return outcome == "evicted" || outcome == "timed_out" || outcome == "outlasting";
}

// Older versions wrote no unit: they evicted whole pods only.
bool whole_pod(const nlohmann::json& line) {
  const std::string unit = text_at(line, "unit");
  return unit.empty() || unit == "pod";
}

std::int64_t microseconds_since_1970(WallTime time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
}

EvictionRecord::Cause cause_of(const nlohmann::json& line) {
  if (line.contains("taint")) return EvictionRecord::Cause::kTaint;
  return text_at(line, "kind") == "limit" ? EvictionRecord::Cause::kLimit
                                          : EvictionRecord::Cause::kThreshold;
}

}  // namespace

std::optional<EvictionRecord> parse_eviction(std::string_view text) {
  const nlohmann::json line = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!line.is_object() || !line.contains("pod") || !line["pod"].is_object()) return std::nullopt;
  if (!died(line) || !whole_pod(line)) return std::nullopt;
  const nlohmann::json& pod = line["pod"];
  const auto time = parse_rfc3339(text_at(line, "time"));
  if (!time) return std::nullopt;
  EvictionRecord evicted{.uid = text_at(pod, "uid"),
                         .name = text_at(pod, "name"),
                         .pod_namespace = text_at(pod, "namespace"),
                         .cause = cause_of(line),
                         .signal = text_at(line, "signal"),
                         .message = text_at(line, "message"),
                         .time = rfc3339(*time),
                         .stamp = fmt::format("{:016x}", microseconds_since_1970(*time))};
  if (evicted.uid.empty() || evicted.name.empty() || evicted.pod_namespace.empty())
    return std::nullopt;
  return evicted;
}

namespace {

using AfterEviction = config::ApiConfig::AfterEviction;

constexpr std::array<Step, kSteps> kOrder{Step::kStatus, Step::kAct, Step::kEvent};

bool open(const PendingEviction& pending, Step step, const PendingEvictionOptions& options) {
  return wanted(step, options) && !pending.at(step).done;
}

// The act waits for the status until it was refused or failed kMaxStatusFailures times.
bool waits_for_status(const PendingEviction& pending, Step step,
                      const PendingEvictionOptions& options) {
  if (step != Step::kAct || !open(pending, Step::kStatus, options)) return false;
  const StepState& status = pending.at(Step::kStatus);
  return !status.refused && status.failures < kMaxStatusFailures;
}

void pod_is_gone(PendingEviction& pending) {
  pending.uid_unverified = false;
  pending.at(Step::kStatus).done = true;
  pending.at(Step::kAct).done = true;
}

void schedule_retry(StepState& state, const StepResult& result, Instant now, double chance) {
  ++state.failures;
  state.refused = result.response_class == ResponseClass::kRefused;
  state.not_before =
      now + wait_after_failure(state.refused, state.failures, chance, result.retry_after);
}

// Classifies the response to a GET of the pod, sent because the uid is unverified.
ResponseClass classify_pod_response(PendingEviction& pending, const HttpResponse& response) {
  if (not_found(response)) return ResponseClass::kGone;
  if (!response.good())
    return response.status < 500 ? ResponseClass::kRefused : ResponseClass::kRetry;
  const auto pod = nlohmann::json::parse(response.body, nullptr, /*allow_exceptions=*/false);
  const auto uid =
      pod.is_object() && pod.contains("metadata") ? text_at(pod["metadata"], "uid") : std::string();
  if (uid.empty()) return ResponseClass::kRetry;
  pending.uid_unverified = false;
  return uid == pending.evicted.uid ? ResponseClass::kRetry : ResponseClass::kGone;
}

ResponseClass classify_event_response(PendingEviction& pending, const HttpResponse& response) {
  const bool made = pending.event_made;
  // An earlier run created it and ended before it could save that.
  if (!made && response.status == 409 && api_status(response).reason == "AlreadyExists") {
    pending.event_made = true;
    return pending.count > 1 ? ResponseClass::kRetry : ResponseClass::kDone;
  }
  if (response.good()) {
    pending.event_made = true;
    return ResponseClass::kDone;
  }
  if (not_found(response)) {
    if (!made) return ResponseClass::kDone;  // the namespace was deleted with its Events
    pending.event_made = false;              // the server keeps Events for an hour
    return ResponseClass::kRetry;
  }
  return response.status < 500 && response.status != 409 ? ResponseClass::kRefused
                                                         : ResponseClass::kRetry;
}

// Classifies the response to a status update, an eviction or a deletion.
ResponseClass classify_change_response(PendingEviction& pending, Step step,
                                       const HttpResponse& response) {
  if (response.good()) return ResponseClass::kDone;
  if (not_found(response)) return ResponseClass::kGone;
  // A pod of this name with another uid is a conflict (409) or an invalid change (422), depending
  // on the server's version.
  if (response.status == 409 || response.status == 422) {
    pending.uid_unverified = true;
    return ResponseClass::kRetry;
  }
  if (step == Step::kAct && (response.status == 400 || response.status == 404)) {
    pending.old_eviction = !pending.old_eviction;
    if (pending.old_eviction) return ResponseClass::kRetry;  // with the other API version
  }
  return response.status < 500 ? ResponseClass::kRefused : ResponseClass::kRetry;
}

// The refusal of a disruption budget concerns this pod only.
bool is_disruption_budget_refusal(Step step, const PendingEviction& pending,
                                  const HttpResponse& response) {
  return step == Step::kAct && !pending.uid_unverified && response.status == 429;
}

ResponseClass response_class(PendingEviction& pending, Step step, const HttpResponse& response) {
  if (is_disruption_budget_refusal(step, pending, response)) return ResponseClass::kRetry;
  if (is_server_error(response)) return ResponseClass::kServerError;
  if (pending.uid_unverified && step != Step::kEvent)
    return classify_pod_response(pending, response);
  return step == Step::kEvent ? classify_event_response(pending, response)
                              : classify_change_response(pending, step, response);
}

}  // namespace

PendingEviction pending_from(EvictionRecord evicted) {
  PendingEviction pending;
  pending.first_time = evicted.time;
  pending.first_stamp = evicted.stamp;
  pending.evicted = std::move(evicted);
  return pending;
}

void merge_repeated_eviction(PendingEviction& pending, EvictionRecord evicted) {
  pending.evicted = std::move(evicted);
  ++pending.count;
  pending.uid_unverified = false;
  pending.steps = {};
}

bool wanted(Step step, const PendingEvictionOptions& options) {
  switch (step) {
    case Step::kStatus:
      return options.after != AfterEviction::kNone;
    case Step::kAct:
      return options.after == AfterEviction::kEvict || options.after == AfterEviction::kDelete;
    case Step::kEvent:
      return options.after != AfterEviction::kNone && options.events;
  }
  return false;
}

bool finished(const PendingEviction& pending, const PendingEvictionOptions& options) {
  return std::none_of(kOrder.begin(), kOrder.end(),
                      [&](Step step) { return open(pending, step, options); });
}

std::optional<Step> next_step(const PendingEviction& pending, const PendingEvictionOptions& options,
                              Instant now) {
  for (const Step step : kOrder)
    if (open(pending, step, options) && !waits_for_status(pending, step, options) &&
        pending.at(step).not_before <= now)
      return step;
  return std::nullopt;
}

std::optional<Instant> due(const PendingEviction& pending, const PendingEvictionOptions& options) {
  std::optional<Instant> first;
  for (const Step step : kOrder) {
    if (!open(pending, step, options) || waits_for_status(pending, step, options)) continue;
    const Instant at = pending.at(step).not_before;
    first = first ? std::min(*first, at) : at;
  }
  return first;
}

HttpRequest request_for(const PendingEviction& pending, Step step,
                        const PendingEvictionOptions& options) {
  switch (step) {
    case Step::kStatus:
      return pending.uid_unverified ? pod_get(pending) : pod_status_patch(pending);
    case Step::kAct:
      if (pending.uid_unverified) return pod_get(pending);
      return options.after == AfterEviction::kEvict ? pod_eviction(pending) : pod_deletion(pending);
    case Step::kEvent:
      return pending.event_made ? event_patch(pending) : event_creation(pending, options);
  }
  return {};
}

StepResult record_response(PendingEviction& pending, Step step,
                           const Result<HttpResponse>& response, Instant now, double chance) {
  if (!response)
    return {.response_class = ResponseClass::kServerError,
            .retry_after = {},
            .why = response.error().what};
  StepResult result{.response_class = response_class(pending, step, *response),
                    .retry_after = retry_after(*response),
                    .why = response->good() ? "" : error_text(*response)};
  switch (result.response_class) {
    case ResponseClass::kDone:
      pending.at(step) = {.done = true};
      break;
    case ResponseClass::kGone:
      pod_is_gone(pending);
      break;
    case ResponseClass::kRetry:
    case ResponseClass::kRefused:
      schedule_retry(pending.at(step), result, now, chance);
      break;
    case ResponseClass::kServerError:
      break;  // all requests wait, so this step needs no wait of its own
  }
  return result;
}

}  // namespace headroom::kube
