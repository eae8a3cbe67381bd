// SPDX-License-Identifier: Apache-2.0
#include "base/state/checked_json.h"

#include "base/state/json_integer.h"

#include <utility>

namespace headroom::state {
namespace {

std::uint32_t checksum_of(const nlohmann::json& value) {
  return crc32c(to_json_text(value));
}

}  // namespace

nlohmann::json checked_json(int version, nlohmann::json value) {
  const std::uint32_t checksum = checksum_of(value);
  return {{"version", version}, {"crc32c", checksum}, {"value", std::move(value)}};
}

Result<nlohmann::json> checked_value(const nlohmann::json& whole, int version) {
  if (const auto found = integer_of<int>(whole.at("version")); found != version)
    return failure("version " + std::to_string(found) + " is unknown");
  const nlohmann::json& value = whole.at("value");
  if (whole.at("crc32c") != checksum_of(value)) return failure("the checksum is wrong");
  return value;
}

}  // namespace headroom::state
