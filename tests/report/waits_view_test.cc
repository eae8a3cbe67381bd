// SPDX-License-Identifier: Apache-2.0
#include "report/view/waits_view.h"

#include <gtest/gtest.h>

namespace headroom::report {
namespace {

using namespace std::chrono_literals;

TEST(Waits, AQuantileIsTheBoundOfItsBucket) {
  hr_waits waits{};
  EXPECT_EQ(quantile(waits, 0.5), std::nullopt) << "nothing waited";
  waits.buckets[0] = 99;  // below 1 us
  waits.buckets[10] = 1;  // below 1024 us
  EXPECT_EQ(quantile(waits, 0.5), Duration(1us));
  EXPECT_EQ(quantile(waits, 0.99), Duration(1us));
  EXPECT_EQ(quantile(waits, 1.0), Duration(1024us));
  waits = {};
  waits.buckets[HR_WAIT_BUCKETS - 1] = 1;
  EXPECT_EQ(quantile(waits, 0.99), Duration(std::chrono::microseconds(1 << 23)));
}

TEST(Waits, AddUp) {
  hr_stalls sum{}, more{};
  more.causes[HR_STALL_HIGH] = {.ns = 5, .count = 2, .buckets = {1, 1}};
  add(more, sum);
  add(more, sum);
  EXPECT_EQ(sum.causes[HR_STALL_HIGH].ns, 10u);
  EXPECT_EQ(sum.causes[HR_STALL_HIGH].count, 4u);
  EXPECT_EQ(sum.causes[HR_STALL_HIGH].buckets[1], 2u);
  EXPECT_EQ(sum.causes[HR_STALL_GLOBAL].count, 0u);
}

TEST(Waits, ATableDropsWhatIsNotReadAgain) {
  const std::uint64_t ids[] = {7};
  const hr_waits values[] = {{.ns = 1, .count = 1, .buckets = {}}};
  WaitTable<hr_waits> table;
  table.assign(ByCgroup<hr_waits>{ids, values});
  EXPECT_TRUE(table.known);
  EXPECT_EQ(table.ids.size(), 1u);
  table.assign(std::nullopt);
  EXPECT_FALSE(table.known);
  EXPECT_TRUE(table.ids.empty());
}

TEST(Waits, ATableThatLacksWaitsDoesNotListAll) {
  WaitTable<hr_waits> table;
  EXPECT_FALSE(table.lists_all());
  table.assign(ByCgroup<hr_waits>{});
  EXPECT_TRUE(table.lists_all());
  table.assign(ByCgroup<hr_waits>{.ids = {}, .values = {}, .lost = 1});
  EXPECT_FALSE(table.lists_all());
  table.assign(std::nullopt);
  EXPECT_FALSE(table.lists_all());
}

}  // namespace
}  // namespace headroom::report
