// SPDX-License-Identifier: Apache-2.0
// What all responses of an API server have in common.
#pragma once

#include "kube/http_client.h"

#include <headroom/units.h>

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace headroom::kube {

// A metav1.Status, as far as it was one.
struct ApiStatus {
  std::string reason{};  // "NotFound", "Conflict", "AlreadyExists"
  std::string message{};
  std::string kind{};  // details.kind: what was not found, "pods"
};
ApiStatus api_status(const HttpResponse& response);

// Retry-After in seconds; a date, which API servers do not send, is passed over.
std::optional<Duration> retry_after(const HttpResponse& response);

// The API server itself says that there is no such thing; a proxy's 404 says nothing about it.
bool not_found(const HttpResponse& response);

// 401, 503, 504, and 429 where no disruption budget is asked about: all that is sent fares alike.
bool is_server_error(const HttpResponse& response);

// "503 ServiceUnavailable: apiserver is shutting down".
std::string error_text(const HttpResponse& response);

std::string to_json_text(const nlohmann::ordered_json& json);

}  // namespace headroom::kube
