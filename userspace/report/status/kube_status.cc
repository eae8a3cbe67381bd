// SPDX-License-Identifier: Apache-2.0
#include "report/status/kube_status.h"

#include <cstdint>
#include <fstream>
#include <system_error>

#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uintmax_t kMaxFileBytes = 1 << 20;

}  // namespace

Json kubernetes_json(const std::filesystem::path& file) {
  std::error_code error;
  const auto size = std::filesystem::file_size(file, error);
  if (file.empty() || error || size > kMaxFileBytes) return nullptr;
  std::ifstream in(file);
  Json json = Json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return nullptr;
  return json;
}

}  // namespace headroom::report
