// SPDX-License-Identifier: Apache-2.0
// Which pods took memory while others waited for it.
#include "judge/waits/memory_wait_pairs.h"

#include <headroom/cgroup_record.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace headroom {
namespace {

using namespace std::chrono_literals;

// Three pods, of which the container of the first waits.
class MemoryWaitPairsTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const std::uint64_t id : {1, 2, 3}) {
      records.push_back(unknown_record(id, 0));
      records.back().valid = HR_MEMORY_USAGE | HR_RECLAIM;
      records.back().memory_usage = 100 << 20;
      records.back().refault_anon = records.back().refault_file = 0;
    }
    records.push_back(unknown_record(11, 1));
    for (std::size_t i = 0; i < 3; ++i)
      pods.push_back({.pod = std::make_shared<Pod>(),
                      .cgroup = CgroupId{records[i].id},
                      .record = &records[i],
                      .memory_request = {}});
  }

  std::vector<hr_record> records;
  std::vector<PodReading> pods;
  const std::vector<std::uint64_t> ids{11};
  std::vector<hr_stalls> stalls = std::vector<hr_stalls>(1);
  std::optional<ByCgroup<hr_stalls>> watched{{ids, stalls}};
  MemoryWaitPairs pairs;
};

TEST_F(MemoryWaitPairsTest, AWaitIsDividedAmongThePodsThatTookMemory) {
  pairs.update(Instant(1h), records, pods, watched);
  stalls[0].causes[HR_STALL_GLOBAL].ns = 3'000'000'000;
  stalls[0].causes[HR_STALL_LIMIT].ns = 9'000'000'000;  // its own
  records[1].memory_usage += 30 << 20;
  records[2].refault_file += (10 << 20) / 4096;
  pairs.update(Instant(1h + 5s), records, pods, watched);
  ASSERT_EQ(pairs.longest().size(), 2u);
  EXPECT_EQ(pairs.longest()[0].holder, CgroupId{2});
  EXPECT_EQ(pairs.longest()[0].waiter, CgroupId{1});
  EXPECT_EQ(pairs.longest()[0].ns / 1'000'000, 2250u);
  EXPECT_EQ(pairs.longest()[1].holder, CgroupId{3});
  pairs.update(Instant(1h + 10s), records, pods, std::nullopt);
  EXPECT_EQ(pairs.longest().size(), 2u) << "what is not observed is not forgotten";
}

TEST_F(MemoryWaitPairsTest, OfAWindowInWhichWaitsWereLostNothingIsKnown) {
  const auto wait = [&](Instant at, std::uint64_t lost) {
    stalls[0].causes[HR_STALL_GLOBAL].ns += 1'000'000'000;
    records[1].memory_usage += 30 << 20;
    watched->lost = lost;
    pairs.update(at, records, pods, watched);
  };
  wait(Instant(1h), 0);
  wait(Instant(1h + 5s), 3);
  EXPECT_TRUE(pairs.longest().empty()) << "another pod may have waited as well";
  wait(Instant(1h + 10s), 3);
  ASSERT_EQ(pairs.longest().size(), 1u) << "all of this one are known";
  EXPECT_EQ(pairs.longest()[0].ns / 1'000'000, 1000u);
}

}  // namespace
}  // namespace headroom
