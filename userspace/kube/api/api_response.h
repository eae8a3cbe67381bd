// SPDX-License-Identifier: Apache-2.0
// The common parts of an API server's responses (status, Retry-After, errors), and how long to
// wait before a retry.
#pragma once

#include "kube/http_client.h"

#include <headroom/units.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

namespace headroom::kube {

// wait_after(): how long to wait after failed requests to a server before the next one.

inline constexpr Duration kFirstWait = std::chrono::milliseconds(250);
inline constexpr Duration kMaxWait = std::chrono::seconds(10);
// The least wait after a refusal: a request is refused again until a role or a version changes.
inline constexpr Duration kRefusedRetryWait = std::chrono::minutes(1);
inline constexpr Duration kMaxRetryAfter = std::chrono::minutes(10);  // a longer one is cut to this

// The wait after `failures` in a row (from 1). `chance` is random, in [0, 1): thousands of nodes
// that lost the same server must not return to it at the same moment. The result is between half of
// the wait and all of it; a Retry-After is waited for in full, and up to a quarter longer.
constexpr Duration wait_after(unsigned failures, double chance,
                              std::optional<Duration> retry_after = {},
                              Duration longest = kMaxWait) {
  const unsigned doublings = std::min(failures > 0 ? failures - 1 : 0, 16U);
  const Duration full = std::min(kFirstWait * (1 << doublings), longest);
  const auto part = [](Duration whole, double share) {
    return Duration(static_cast<Duration::rep>(static_cast<double>(whole.count()) * share));
  };
  const Duration wait = part(full, 0.5 + chance / 2);
  if (!retry_after) return wait;
  return std::max(wait, part(std::min(*retry_after, kMaxRetryAfter), 1 + chance / 4));
}

// The same after a request that was refused, or that failed otherwise.
constexpr Duration wait_after_failure(bool refused, unsigned failures, double chance,
                                      std::optional<Duration> retry_after) {
  const Duration wait = wait_after(failures, chance, retry_after);
  return refused ? std::max(wait, kRefusedRetryWait) : wait;
}

// The fields used of a metav1.Status; empty if the body was not one.
struct ApiStatus {
  std::string reason{};  // "NotFound", "Conflict", "AlreadyExists"
  std::string message{};
  std::string kind{};  // details.kind: what was not found, "pods"
};
ApiStatus api_status(const HttpResponse& response);

// Retry-After in seconds; absent if the header is missing or a date, which API servers do not send.
std::optional<Duration> retry_after(const HttpResponse& response);

// True if the API server itself reports that the object is missing. A proxy's 404 has no Status
// with details.kind and does not count.
bool not_found(const HttpResponse& response);

// True for 401, 429, 503 and 504: any other request would fail in the same way. For an eviction,
// 429 is the answer of a disruption budget; the caller checks that first.
bool is_server_error(const HttpResponse& response);

// "503 ServiceUnavailable: apiserver is shutting down".
std::string error_text(const HttpResponse& response);

}  // namespace headroom::kube
