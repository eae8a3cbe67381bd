// SPDX-License-Identifier: Apache-2.0
// text_at(): a string field of a JSON value from another program; "" if the value is not an object
// or has no such string.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace headroom::kube {

inline std::string text_at(const nlohmann::json& object, const char* key) {
  if (!object.is_object()) return "";
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace headroom::kube
