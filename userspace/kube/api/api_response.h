// SPDX-License-Identifier: Apache-2.0
// Functions that read the common parts of an API server's responses: status, Retry-After, errors.
#pragma once

#include "kube/http_client.h"

#include <headroom/units.h>

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace headroom::kube {

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

std::string to_json_text(const nlohmann::ordered_json& json);

}  // namespace headroom::kube
