// SPDX-License-Identifier: Apache-2.0
// text_at(): a string of an object that others wrote: "" where there is none, or no object.
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
