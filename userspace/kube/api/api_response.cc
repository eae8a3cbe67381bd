// SPDX-License-Identifier: Apache-2.0
#include "kube/api/api_response.h"

#include "base/json_text.h"

#include <charconv>
#include <chrono>

namespace headroom::kube {

ApiStatus api_status(const HttpResponse& response) {
  const auto body = nlohmann::json::parse(response.body, nullptr, /*allow_exceptions=*/false);
  if (text_at(body, "kind") != "Status") return {};
  ApiStatus status{.reason = text_at(body, "reason"), .message = text_at(body, "message")};
  if (body.contains("details")) status.kind = text_at(body["details"], "kind");
  return status;
}

std::optional<Duration> retry_after(const HttpResponse& response) {
  const std::string* text = response.header("retry-after");
  if (!text) return std::nullopt;
  std::uint32_t seconds = 0;
  const char* const end = text->data() + text->size();
  const auto [rest, error] = std::from_chars(text->data(), end, seconds);
  if (error != std::errc() || rest != end) return std::nullopt;
  return std::chrono::seconds(seconds);
}

bool not_found(const HttpResponse& response) {
  return response.status == 404 && !api_status(response).kind.empty();
}

bool is_server_error(const HttpResponse& response) {
  return response.status == 401 || response.status == 429 || response.status == 503 ||
         response.status == 504;
}

std::string error_text(const HttpResponse& response) {
  const ApiStatus status = api_status(response);
  std::string text = std::to_string(response.status);
  if (!status.reason.empty()) text += " " + status.reason;
  if (!status.message.empty()) text += ": " + status.message;
  return text;
}

}  // namespace headroom::kube
