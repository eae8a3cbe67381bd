// SPDX-License-Identifier: Apache-2.0
// The integers of a JSON document that may be damaged or made by an enemy. A fraction, an exponent
// and more than 64 bits are floating-point numbers to the parser, and get() converts these without
// a defined result.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

namespace headroom {

// Throws nlohmann::json::type_error if it is none.
template <std::integral T, typename Json>
T integer_of(const Json& json) {
  (void)json.template get_ref<const typename Json::number_integer_t&>();
  return json.template get<T>();
}

// A number without its fraction. Absent: it is no number, or does not fit.
template <typename Json>
std::optional<std::int64_t> whole_number_of(const Json& json) {
  constexpr double kEnd = 0x1p63;
  if (json.is_number_unsigned() &&
      json.template get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()})
    return std::nullopt;
  if (json.is_number_integer()) return json.template get<std::int64_t>();
  if (!json.is_number()) return std::nullopt;
  const double number = json.template get<double>();
  if (!(number >= -kEnd && number < kEnd)) return std::nullopt;
  return static_cast<std::int64_t>(number);
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

}  // namespace headroom
