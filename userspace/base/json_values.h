// SPDX-License-Identifier: Apache-2.0
// JSON of values that may be unknown: null for what is not known.
#pragma once

#include <headroom/units.h>

#include <optional>

#include <nlohmann/json.hpp>

namespace headroom {

template <class T>
nlohmann::ordered_json or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}
inline nlohmann::ordered_json or_null(const std::optional<Bytes>& bytes) {
  return bytes ? nlohmann::ordered_json(bytes->count) : nlohmann::ordered_json(nullptr);
}

// Nanoseconds since boot; null for an instant that has not been (Instant{}).
inline nlohmann::ordered_json boot_ns(Instant instant) {
  return instant == Instant{} ? nlohmann::ordered_json(nullptr)
                              : nlohmann::ordered_json(instant.time_since_epoch().count());
}

}  // namespace headroom
