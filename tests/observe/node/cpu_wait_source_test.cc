// SPDX-License-Identifier: Apache-2.0
// The lines of CPUs in /proc/stat, and what a snapshot has of a window.
#include "observe/node/cpu_wait_source.h"

#include "support/fake_cgroupfs.h"

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

constexpr std::uint64_t kTick = 10'000'000;

TEST(CpuTimes, AreReadForEachCpuThatIsOnline) {
  const CpuTimes times = parse_cpu_times(
      "cpu  15 0 9 200 4 1 2 3 0 0\n"
      "cpu0 10 2 5 100 4 1 2 3 9 1\n"
      "cpu2 5 0 4 100 0 0 0 0 0 0\n"
      "intr 123 0 1\nctxt 5\n",
      100);
  ASSERT_EQ(times.size(), 3u);
  ASSERT_TRUE(times[0]);
  EXPECT_EQ(times[0]->idle, 104 * kTick);
  EXPECT_EQ(times[0]->interrupts, 6 * kTick);
  EXPECT_EQ(times[0]->tasks, 17 * kTick);  // guest time is in user
  EXPECT_FALSE(times[1]);
  EXPECT_EQ(times[2]->tasks, 9 * kTick);
}

TEST(CpuTimes, ADamagedOrCutLineIsAbsent) {
  for (const char* text :
       {"", "intr 1\n", "cpu  1 2 3 4 5 6 7 8\n", "cpu0 1 2 3 x 5 6 7 8\n", "cpu0 1 2 3\n",
        "cpu0 1 2 3 4 5 6 7 8", "cpu99999999999999999999 1 2 3 4 5 6 7 8\n"})
    for (const auto& time : parse_cpu_times(text, 100))
      EXPECT_FALSE(time) << text;
}

class CpuWaitSourceTest : public ::testing::Test {
 protected:
  // CPU 0 was busy for all of these seconds.
  Snapshot at(int seconds, SnapshotScope scope) {
    const std::string cpu = "cpu0 " + std::to_string(100 * seconds) + " 0 0 100 0 0 0 0 0 0\n";
    fs_.write("", "stat", "cpu" + cpu.substr(4) + cpu + "intr 1\n");
    Snapshot snapshot;
    snapshot.cgroups.emplace();
    source_.update(scope, Instant(std::chrono::seconds(seconds)), *inventory_, snapshot, pressure_);
    return snapshot;
  }

  test::FakeCgroupfs fs_{{.files = {{"stat", ""}}}};
  Result<CgroupInventory> inventory_ =
      CgroupInventory::open(fs_.root(), CgroupInventory::By::kParent);
  CpuWaitSource source_{fs_.root(), fs_.root()};
  std::optional<Observation> pressure_;
};

// The turn in which a window ends judges a sweep, and then, if a pod may have to be evicted, a
// second snapshot.
TEST_F(CpuWaitSourceTest, TheSnapshotForADecisionHasTheUsesOfTheWindowThatEnded) {
  ASSERT_TRUE(inventory_);
  EXPECT_FALSE(at(10, SnapshotScope::kDecision).waits.cpu_use) << "no window has ended";
  EXPECT_TRUE(at(15, SnapshotScope::kCgroups).waits.cpu_use);
  ASSERT_TRUE(pressure_);
  EXPECT_TRUE(at(15, SnapshotScope::kDecision).waits.cpu_use);
  EXPECT_FALSE(at(16, SnapshotScope::kCgroups).waits.cpu_use) << "old";
  EXPECT_EQ(pressure_->at, Instant(std::chrono::seconds(15)));
}

}  // namespace
}  // namespace headroom::observe
