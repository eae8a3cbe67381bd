// SPDX-License-Identifier: Apache-2.0
// PendingEviction: what is to be sent to the API server about one evicted pod, and how far that
// got.
//
// Pure: the next request, and the meaning of a response, are functions of the pending eviction, the
// options and the time. Every request may be sent twice and has one effect: the pod is named by its
// uid, the Event by the eviction. So a crash between a response and its recording does no harm.
#pragma once

#include "config/kubernetes_config.h"
#include "kube/api/eviction_record.h"
#include "kube/http_client.h"

#include <headroom/result.h>
#include <headroom/units.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headroom::kube {

struct PendingEvictionOptions {
  config::ApiConfig::AfterEviction after = config::ApiConfig::AfterEviction::kNone;
  bool events = true;
  std::string node_name;
};

// In the order in which they are taken. Status first: a pod that has failed is no business of
// disruption budgets any more, and a pod that is gone has no status.
enum class Step : std::uint8_t {
  kStatus,  // the pod's status is patched
  kAct,     // it is evicted or deleted
  kEvent,   // an Event is made, or counts one more
};
inline constexpr std::size_t kSteps = 3;
constexpr std::string_view name(Step step) {
  constexpr std::array<std::string_view, kSteps> kNames{"status", "act", "event"};
  return kNames[static_cast<std::size_t>(step)];
}

struct StepState {
  bool done = false;
  unsigned failures = 0;  // in a row
  bool refused = false;   // the last failure was a no, not a trouble
  Instant not_before{};
  friend bool operator==(const StepState&, const StepState&) = default;
};

struct PendingEviction {
  EvictionRecord evicted;   // the latest
  std::string first_time;   // and the time of the first, of several that were not sent yet
  std::string first_stamp;  // the Event is named by it
  unsigned count = 1;       // how often the pod was evicted: a kubelet restarts it until it knows
  std::array<StepState, kSteps> steps;
  bool event_made = false;
  // Something contradicted us about the pod: is it still the one that was evicted?
  bool uid_unverified = false;
  bool old_eviction = false;  // policy/v1 is unknown to the server: it is older than 1.22

  StepState& at(Step step) { return steps[static_cast<std::size_t>(step)]; }
  const StepState& at(Step step) const { return steps[static_cast<std::size_t>(step)]; }
  friend bool operator==(const PendingEviction&, const PendingEviction&) = default;
};

PendingEviction pending_from(EvictionRecord evicted);
// The pod was evicted again before everything was sent: all is sent again, with one Event for both.
void merge_repeated_eviction(PendingEviction& pending, EvictionRecord evicted);

bool wanted(Step step, const PendingEvictionOptions& options);
bool finished(const PendingEviction& pending, const PendingEvictionOptions& options);

// The next step; absent if it is to wait, or finished. A failing status update delays the deletion
// only for a while: replacing the pod matters more than its status.
std::optional<Step> next_step(const PendingEviction& pending, const PendingEvictionOptions& options,
                              Instant now);
inline constexpr unsigned kMaxStatusFailures = 4;  // failures of the status that the act waits for
// When next_step() has one; nothing when finished.
std::optional<Instant> due(const PendingEviction& pending, const PendingEvictionOptions& options);

// What to send for it: a question about the pod while that is in doubt.
HttpRequest request_for(const PendingEviction& pending, Step step,
                        const PendingEvictionOptions& options);

enum class ResponseClass : std::uint8_t {
  kDone,
  kGone,         // the pod is not there any more: nothing is left to be done about it
  kRetry,        // this did not work out: later
  kRefused,      // and will be refused until an operator changes something
  kServerError,  // the server itself is in trouble, or we are with it: leave it alone as a whole
};
inline constexpr std::size_t kResponseClasses = 5;
constexpr std::string_view name(ResponseClass response_class) {
  constexpr std::array<std::string_view, kResponseClasses> kNames{"done", "gone", "again",
                                                                  "refused", "server"};
  return kNames[static_cast<std::size_t>(response_class)];
}

struct StepResult {
  ResponseClass response_class = ResponseClass::kRetry;
  std::optional<Duration> retry_after{};
  std::string why{};  // "503: apiserver is shutting down"; "" when all is well
};

// What the answer means, and the posting after it; `chance`: see wait_after().
StepResult record_response(PendingEviction& pending, Step step,
                           const Result<HttpResponse>& response, Instant now, double chance);

// "web.000643f1d0c0a1b2", as the kubelet names its Events; cut to what a name may be.
std::string event_name(const PendingEviction& pending);

}  // namespace headroom::kube
