// SPDX-License-Identifier: Apache-2.0
// PendingEviction: the requests that are sent to the API server about one evicted pod, and their
// progress.
//
// Pure: the next request, and the meaning of a response, are functions of the pending eviction, the
// options and the time. Every request is idempotent: the pod is named by its uid, the Event by the
// eviction. So a crash between a response and its recording does no harm.
#pragma once

#include "config/config.h"
#include "kube/http_client.h"

#include <headroom/result.h>
#include <headroom/units.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headroom::kube {

// EvictionRecord: the part of one line of headroomd's audit log that is sent to the API server.

struct EvictionRecord {
  // The reasons that upstream's conditions and events distinguish.
  enum class Cause : std::uint8_t { kThreshold, kLimit, kTaint };

  std::string uid;
  std::string name;
  std::string pod_namespace;
  Cause cause = Cause::kThreshold;
  std::string signal;   // "memory.available"; "taint"
  std::string message;  // in the kubelet's wording
  std::string time;     // of the decision, RFC 3339 in whole seconds, as the API server keeps it
  std::string stamp;    // the same in microseconds since 1970, as 16 hexadecimal digits
  friend bool operator==(const EvictionRecord&, const EvictionRecord&) = default;
};

// Absent if the line is not about a pod that was killed: in observe mode no pod is killed; a pod
// that vanished or could not be signalled was not evicted; for a part of a pod (a container, a
// process) the kubelet does the rest; a pod without a name does not exist in the API.
std::optional<EvictionRecord> parse_eviction(std::string_view line);

struct PendingEvictionOptions {
  config::ApiConfig::AfterEviction after = config::ApiConfig::AfterEviction::kNone;
  bool events = true;
  std::string node_name;
};

// In the order in which they are taken. The status is first: disruption budgets ignore a pod in
// phase Failed, and a deleted pod has no status.
enum class Step : std::uint8_t {
  kStatus,  // the pod's status is patched
  kAct,     // it is evicted or deleted
  kEvent,   // an Event is created, or its count is raised
};
inline constexpr std::size_t kSteps = 3;
constexpr std::string_view name(Step step) {
  constexpr std::array<std::string_view, kSteps> kNames{"status", "act", "event"};
  return kNames[static_cast<std::size_t>(step)];
}

struct StepState {
  bool done = false;
  unsigned failures = 0;  // in a row
  bool refused = false;   // the last failure was a refusal
  Instant not_before{};
  friend bool operator==(const StepState&, const StepState&) = default;
};

struct PendingEviction {
  EvictionRecord evicted;   // the latest eviction of the pod
  std::string first_time;   // the time of its first eviction that was not sent yet
  std::string first_stamp;  // the stamp of that eviction; part of the Event's name
  unsigned count = 1;  // evictions of the pod: a kubelet restarts it until it knows of the eviction
  std::array<StepState, kSteps> steps;
  bool event_made = false;
  // A response contradicted the uid: the next request checks that this is still the evicted pod.
  bool uid_unverified = false;
  bool old_eviction = false;  // the server does not know policy/v1: it is older than 1.22

  StepState& at(Step step) { return steps[static_cast<std::size_t>(step)]; }
  const StepState& at(Step step) const { return steps[static_cast<std::size_t>(step)]; }
  friend bool operator==(const PendingEviction&, const PendingEviction&) = default;
};

PendingEviction pending_from(EvictionRecord evicted);
// The pod was evicted again before everything was sent: every step is repeated, with one Event for
// both evictions.
void merge_repeated_eviction(PendingEviction& pending, EvictionRecord evicted);

bool wanted(Step step, const PendingEvictionOptions& options);
bool finished(const PendingEviction& pending, const PendingEvictionOptions& options);

// The next step; absent if all steps are done or must wait. A failing status update delays the
// deletion only for a while: replacing the pod matters more than its status.
std::optional<Step> next_step(const PendingEviction& pending, const PendingEvictionOptions& options,
                              Instant now);
// After this many failed status updates, the act no longer waits for the status.
inline constexpr unsigned kMaxStatusFailures = 4;
// When next_step() returns a step; absent if all are done.
std::optional<Instant> due(const PendingEviction& pending, const PendingEvictionOptions& options);

// The request of a step; while the pod's uid is unverified, a GET of the pod instead.
HttpRequest request_for(const PendingEviction& pending, Step step,
                        const PendingEvictionOptions& options);

enum class ResponseClass : std::uint8_t {
  kDone,
  kGone,         // the pod does not exist any more: nothing is left to do for it
  kRetry,        // the request failed; it is sent again later
  kRefused,      // it will be refused until an operator changes something
  kServerError,  // the server, or the connection to it, fails: all requests wait
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
  std::string why{};  // "503: apiserver is shutting down"; "" after a success
};

// Classifies the response and updates the pending eviction. `chance`: see wait_after().
StepResult record_response(PendingEviction& pending, Step step,
                           const Result<HttpResponse>& response, Instant now, double chance);

// "web.000643f1d0c0a1b2", as the kubelet names its Events; cut to the maximum length of a name.
std::string event_name(const PendingEviction& pending);

}  // namespace headroom::kube
