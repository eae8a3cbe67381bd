// SPDX-License-Identifier: Apache-2.0
// The fixed table of evictions under way: full, reused, forgotten.
#include "report/eviction/eviction_table.h"

#include "report/sample.h"

#include <gtest/gtest.h>

namespace headroom::report {
namespace {

using namespace std::chrono_literals;
using test::sample_at;

TEST(EvictionTable, FindsWhatWasOpenedUntilItIsClosed) {
  EvictionTable table;
  TrackedEviction& opened = table.open(CgroupId{5}, {}, sample_at(0));
  EXPECT_EQ(table.find(CgroupId{5}), &opened);
  table.close(opened);
  EXPECT_EQ(table.find(CgroupId{5}), nullptr);
}

TEST(EvictionTable, WhenFullTheOldestIsOverwrittenAndCounted) {
  EvictionTable table;
  for (std::uint64_t i = 1; i <= EvictionTable::kRecords; ++i)
    table.open(CgroupId{i}, {}, sample_at(static_cast<std::int64_t>(i)));
  EXPECT_EQ(table.overwritten(), 0u);
  table.open(CgroupId{1000}, {}, sample_at(1000));
  EXPECT_EQ(table.overwritten(), 1u);
  EXPECT_EQ(table.find(CgroupId{1}), nullptr);
  EXPECT_NE(table.find(CgroupId{2}), nullptr);
  EXPECT_NE(table.find(CgroupId{1000}), nullptr);
}

TEST(EvictionTable, APartIsNotItsPod) {
  EvictionTable table;
  const Part part{.unit = EvictionUnit::kContainer, .cgroup = CgroupId{6}};
  table.open(CgroupId{5}, part, sample_at(0));
  EXPECT_EQ(table.find(CgroupId{5}), nullptr);
  EXPECT_NE(table.find(CgroupId{5}, part), nullptr);
}

TEST(EvictionTable, RemovesOldReportedEvictionsOnly) {
  EvictionTable table;
  table.open(CgroupId{1}, {}, sample_at(0));
  table.open(CgroupId{2}, {}, sample_at(0)).reported = Ending::kFailed;
  table.remove_reported(sample_at(59'999), 60s);
  EXPECT_NE(table.find(CgroupId{2}), nullptr);
  table.remove_reported(sample_at(60'000), 60s);
  EXPECT_EQ(table.find(CgroupId{2}), nullptr);
  EXPECT_NE(table.find(CgroupId{1}), nullptr);
}

TEST(EvictionTable, AClosedRecordKeepsItsBuffers) {
  Eviction eviction = test::sample_eviction();
  const auto capacity = eviction.ranking.capacity();
  reset(eviction);
  EXPECT_TRUE(eviction.ranking.empty());
  EXPECT_EQ(eviction.ranking.capacity(), capacity);
  EXPECT_EQ(eviction.decision.pod, nullptr);
  EXPECT_EQ(eviction.ending, Ending::kOpen);
}

}  // namespace
}  // namespace headroom::report
