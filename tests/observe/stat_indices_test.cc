// SPDX-License-Identifier: Apache-2.0
// Which index tables are believed. A wrong index is worse than none.
#include "observe/bpf/kernel_facts.h"

#include <headroom/bpf/abi.h>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

using Bytes = std::vector<unsigned char>;
using Positions = std::vector<std::uint32_t>;
constexpr std::uint32_t kNone = HR_NO_INDEX;

Bytes as_ints(std::initializer_list<std::uint32_t> entries) {
  Bytes bytes;
  for (std::uint32_t entry : entries)
    for (int byte = 0; byte < 4; ++byte)
      bytes.push_back(static_cast<unsigned char>(entry >> (8 * byte)));
  return bytes;
}

struct Case {
  const char* name;
  Bytes table;
  std::size_t items, length;
  std::optional<Positions> positions;
};

TEST(StatIndices, Tables) {
  const Case cases[] = {
      {"bytes_from_0", {0, 1, 255, 2, 255}, 5, 3, Positions{0, 1, kNone, 2, kNone}},
      {"bytes_from_1_as_in_6_11", {1, 0, 2, 3, 0}, 5, 3, Positions{0, kNone, 1, 2, kNone}},
      {"ints_from_1_as_in_6_1", as_ints({0, 2, 1, 0, 3}), 5, 3, Positions{kNone, 1, 0, kNone, 2}},
      {"ints_from_0", as_ints({~0u, 1, 0}), 3, 2, Positions{kNone, 1, 0}},
      {"order_is_free", {2, 255, 0, 1}, 4, 3, Positions{2, kNone, 0, 1}},
      {"a_position_twice", {0, 1, 1, 255}, 4, 3, std::nullopt},
      {"a_position_past_the_end", {0, 1, 3, 255}, 4, 3, std::nullopt},
      {"a_position_missing", {0, 1, 255, 255}, 4, 3, std::nullopt},
      {"all_zero", {0, 0, 0, 0}, 4, 3, std::nullopt},
      {"too_short", {0, 1}, 3, 2, std::nullopt},
      {"of_nothing", {255, 255}, 2, 0, std::nullopt},
      {"another_table", {7, 200, 13, 99}, 4, 3, std::nullopt},
  };
  for (const Case& c : cases)
    EXPECT_EQ(decode_index_table(c.table, c.items, c.length), c.positions) << c.name;
}

}  // namespace
}  // namespace headroom::observe
