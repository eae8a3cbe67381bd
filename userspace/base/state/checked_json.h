// SPDX-License-Identifier: Apache-2.0
// The JSON of a state file: {"version": 2, "crc32c": 123, "value": ...}.
#pragma once

#include "base/json_text.h"
#include "base/state/field_json.h"

#include <headroom/result.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace headroom {

// crc32c(): the checksum of RFC 3720 (Castagnoli), for files that headroom reads again.

namespace detail {

constexpr std::array<std::uint32_t, 256> crc32c_table() {
  constexpr std::uint32_t kReversedPolynomial = 0x82f63b78;
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit)
      value = (value >> 1) ^ ((value & 1) != 0 ? kReversedPolynomial : 0);
    table[i] = value;
  }
  return table;
}

}  // namespace detail

constexpr std::uint32_t crc32c(std::string_view bytes) {
  constexpr auto kTable = detail::crc32c_table();
  std::uint32_t crc = 0xffffffff;
  for (const char byte : bytes)
    crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~crc;
}

}  // namespace headroom

namespace headroom::state {

// An object with `value`, its version and its checksum, to which the caller may add members. The
// checksum is computed over the value without white space and with sorted keys, as nlohmann::json
// is written.
nlohmann::json checked_json(int version, nlohmann::json value);

// The value in `whole`. Error: it has another version or a wrong checksum. Throws nlohmann's
// exception if a member is missing or of another type.
Result<nlohmann::json> checked_value(const nlohmann::json& whole, int version);

// A value as the text of a file that is read again after a reboot. (StateFile: in the same boot.)
template <class T>
std::string to_checked_text(int version, const T& value) {
  return to_json_text(checked_json(version, state::to_json(value)), 1) + "\n";
}

// Error: what is wrong with the text.
template <class T>
Result<T> from_checked_text(const std::string& text, int version) {
  try {
    const auto json = checked_value(nlohmann::json::parse(text), version);
    if (!json) return tl::make_unexpected(json.error());
    T value{};
    if (!state::from_json(*json, value)) return failure("a value is out of range");
    return value;
  } catch (const nlohmann::json::exception& thrown) {
    return failure(thrown.what());
  }
}

}  // namespace headroom::state
