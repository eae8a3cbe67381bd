// SPDX-License-Identifier: Apache-2.0
// The integers of a JSON document that may be damaged or made by an enemy. A fraction, an exponent
// and more than 64 bits are floating-point numbers to the parser, and get() converts these without
// a defined result.
#pragma once

#include <concepts>
#include <vector>

#include <nlohmann/json.hpp>

namespace headroom::state {

// Throws nlohmann::json::type_error if it is none.
template <std::integral T>
T integer_of(const nlohmann::json& json) {
  (void)json.get_ref<const nlohmann::json::number_integer_t&>();
  return json.get<T>();
}

// Whether all its numbers are integers.
inline bool has_integers_only(const nlohmann::json& whole) {
  std::vector<const nlohmann::json*> rest{&whole};
  while (!rest.empty()) {
    const nlohmann::json& next = *rest.back();
    rest.pop_back();
    if (next.is_number_float()) return false;
    if (next.is_structured())
      for (const nlohmann::json& each : next)
        rest.push_back(&each);
  }
  return true;
}

}  // namespace headroom::state
