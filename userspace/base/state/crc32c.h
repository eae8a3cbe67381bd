// SPDX-License-Identifier: Apache-2.0
// crc32c(): the checksum of RFC 3720 (Castagnoli), for files that headroom reads again.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace headroom {
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
