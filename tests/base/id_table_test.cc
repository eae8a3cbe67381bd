// SPDX-License-Identifier: Apache-2.0
#include <headroom/id_table.h>

#include <cstdint>

#include <gtest/gtest.h>

namespace headroom {
namespace {

TEST(IdTable, FindsWhatWasPutAndNothingElse) {
  constexpr std::size_t kMany = 5000;
  IdTable table(kMany);
  for (std::size_t i = 0; i < kMany; ++i)
    table.put(i * 4096 + 7, i);  // as far apart as some hashes do not like
  for (std::size_t i = 0; i < kMany; ++i) {
    EXPECT_EQ(table.find(i * 4096 + 7), i);
    EXPECT_EQ(table.find(i * 4096 + 8), std::nullopt);
  }
}

TEST(IdTable, AnyNumberIsAnId) {
  IdTable table(2);
  EXPECT_EQ(table.find(0), std::nullopt);
  table.put(0, 1);
  table.put(UINT64_MAX, 2);
  EXPECT_EQ(table.find(0), 1u);
  EXPECT_EQ(table.find(UINT64_MAX), 2u);
}

TEST(IdTable, TheFirstOfAnIdStays) {
  IdTable table(1);
  table.put(5, 1);
  table.put(5, 2);
  EXPECT_EQ(table.find(5), 1u);
}

TEST(IdTable, OfNothingFindsNothing) {
  EXPECT_EQ(IdTable(0).find(1), std::nullopt);
}

}  // namespace
}  // namespace headroom
