// SPDX-License-Identifier: Apache-2.0
#include "kube/api/server_version.h"

#include "base/clock.h"
#include "base/json_text.h"
#include "kube/api/api_response.h"

#include <charconv>
#include <string_view>
#include <system_error>

#include <nlohmann/json.hpp>

namespace headroom::kube {
namespace {

// The number that the text begins with, followed by nothing or by "+".
std::optional<int> number_of(std::string_view text) {
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || number < 0) return std::nullopt;
  if (rest != end && *rest != '+') return std::nullopt;
  return number;
}

}  // namespace

std::string to_string(const ServerVersion& version) {
  return std::to_string(version.major) + "." + std::to_string(version.minor);
}

std::optional<ServerVersion> server_version(const HttpResponse& response) {
  if (!response.good()) return std::nullopt;
  const auto body = nlohmann::json::parse(response.body, nullptr, /*allow_exceptions=*/false);
  const auto major = number_of(text_at(body, "major")), minor = number_of(text_at(body, "minor"));
  if (!major || !minor) return std::nullopt;
  return ServerVersion{*major, *minor};
}

Result<> VersionCheck::ask() {
  if (supported_ || observe::now() < next_) return {};
  next_ = observe::now() + kRefusedRetryWait;
  const auto response = client_.http({.path = "/version", .max_body = 1U << 20}, stop_);
  const auto version = response ? server_version(*response) : std::nullopt;
  if (!version) return {};
  supported_ = *version >= kOldestServer;
  if (supported_) return {};
  next_ = {};
  return failure("the API server is Kubernetes " + to_string(*version) + "; headroom-kube needs " +
                 to_string(kOldestServer) + " or later");
}

}  // namespace headroom::kube
