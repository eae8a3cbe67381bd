// SPDX-License-Identifier: Apache-2.0
// Access to the fields of a JSON record of headroomd. A field that another version does not write
// reads as null, and null is printed as "-".
#pragma once

#include "base/state/json_integer.h"
#include "ctl/common/text_table.h"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace headroom::ctl {

inline const nlohmann::json& at(const nlohmann::json& record,
                                std::initializer_list<const char*> path) {
  static const nlohmann::json kNull;
  const nlohmann::json* here = &record;
  for (const char* key : path) {
    if (!here->is_object()) return kNull;
    const auto it = here->find(key);
    if (it == here->end()) return kNull;
    here = &*it;
  }
  return *here;
}

inline std::string text(const nlohmann::json& value) {
  return value.is_string() ? printable(value.get<std::string>()) : "-";
}
inline std::optional<std::int64_t> integer(const nlohmann::json& value) {
  return whole_number_of(value);
}
inline std::string pod_of(const nlohmann::json& record) {
  return text(at(record, {"pod", "namespace"})) + "/" + text(at(record, {"pod", "name"}));
}
inline std::string milliseconds(const nlohmann::json& value) {
  return value.is_number() ? seconds(value.get<double>() / 1e3) : "-";
}

}  // namespace headroom::ctl
