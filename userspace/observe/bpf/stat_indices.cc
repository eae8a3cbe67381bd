// SPDX-License-Identifier: Apache-2.0
#include "observe/bpf/stat_indices.h"

#include <headroom/abi.h>

#include <algorithm>
#include <cstring>

namespace headroom::observe {
namespace {

struct Encoding {
  std::size_t width;     // bytes
  std::uint32_t first;   // what position 0 is written as
  std::uint32_t absent;  // what "not kept" is written as
};
constexpr Encoding kEncodings[] = {{1, 0, 0xff}, {1, 1, 0}, {4, 1, 0}, {4, 0, ~0u}};

std::uint32_t entry(std::span<const unsigned char> table, std::size_t width, std::size_t item) {
  if (width == 1) return table[item];
  std::uint32_t value = 0;
  std::memcpy(&value, table.data() + item * sizeof value, sizeof value);
  return value;
}

std::optional<std::vector<std::uint32_t>> decode(std::span<const unsigned char> table,
                                                 std::size_t items, std::size_t length,
                                                 const Encoding& encoding) {
  if (table.size() < items * encoding.width) return std::nullopt;
  std::vector<std::uint32_t> positions(items, HR_NO_INDEX);
  std::vector<bool> taken(length, false);
  for (std::size_t item = 0; item < items; ++item) {
    const std::uint32_t written = entry(table, encoding.width, item);
    if (written == encoding.absent) continue;
    const std::uint32_t position = written - encoding.first;
    if (position >= length || taken[position]) return std::nullopt;
    taken[position] = true;
    positions[item] = position;
  }
  if (!std::all_of(taken.begin(), taken.end(), [](bool is) { return is; })) return std::nullopt;
  return positions;
}

}  // namespace

std::string_view name(StatIndices indices) {
  switch (indices) {
    case StatIndices::kUnknown:
      return "unknown";
    case StatIndices::kBtf:
      return "btf";
    case StatIndices::kTable:
      return "table";
    case StatIndices::kKfunc:
      return "kfunc";
  }
  return "unknown";
}

std::optional<std::vector<std::uint32_t>> decode_index_table(std::span<const unsigned char> table,
                                                             std::size_t items,
                                                             std::size_t length) {
  if (length == 0) return std::nullopt;
  for (const Encoding& encoding : kEncodings)
    if (auto positions = decode(table, items, length, encoding)) return positions;
  return std::nullopt;
}

}  // namespace headroom::observe
