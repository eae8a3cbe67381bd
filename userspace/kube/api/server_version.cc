// SPDX-License-Identifier: Apache-2.0
#include "kube/api/server_version.h"

#include "base/json_text.h"

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

}  // namespace headroom::kube
