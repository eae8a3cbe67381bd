// SPDX-License-Identifier: Apache-2.0
// SwapSource from fake /proc and /sys: what is swap, what is compressed, and devices that come and
// go.
#include "observe/node/swap_source.h"

#include "support/fake_cgroupfs.h"

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

using test::FakeCgroup;
using test::FakeCgroupfs;

constexpr const char* kMeminfo =
    "MemTotal:       1024000 kB\nMemFree:  10 kB\nMemAvailable:    50000 kB\n"
    "Active(file):      2000 kB\nAnonPages:       300 kB\nShmem:            20 kB\n"
    "SwapTotal:         1000 kB\nSwapFree:         600 kB\nZswap:            30 kB\n"
    "Zswapped:           90 kB\n";
constexpr const char* kSwaps =
    "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
    "/dev/vda2                               partition\t600\t\t100\t\t-2\n"
    "/dev/zram0                              partition\t300\t\t250\t\t100\n"
    "/dev/zram1                              partition\t100\t\t50\t\t100\n";
constexpr const char* kVmstat =
    "nr_free_pages 1\nworkingset_refault_anon 5\nworkingset_refault_file 7\n"
    "pgsteal_kswapd 100\npgsteal_direct 20\npgsteal_khugepaged 4\n";
constexpr const char* kPressure =
    "some avg10=0.00 avg60=0.00 avg300=0.00 total=900\n"
    "full avg10=0.00 avg60=0.00 avg300=0.00 total=321\n";

class SwapFiles : public ::testing::Test {
 protected:
  SwapFiles()
      : proc(
            {.name = "",
             .files = {{"swaps", kSwaps}, {"vmstat", kVmstat}},
             .children = {{.name = "pressure", .files = {{"memory", kPressure}}, .children = {}}}}),
        sys({.name = "",
             .files = {},
             .children = {{.name = "block",
                           .files = {},
                           .children = {zram("zram0", "256000 60000 70000 90000 71000 1 2 3\n"),
                                        zram("zram1", "51200 10000 12288 0 12288 0 0 0\n")}},
                          {.name = "module",
                           .files = {},
                           .children = {{.name = "zswap",
                                         .files = {},
                                         .children = {{.name = "parameters",
                                                       .files = {{"enabled", "Y\n"},
                                                                 {"max_pool_percent", "20\n"}},
                                                       .children = {}}}}}}}}),
        source(proc.root(), sys.root()) {}
  static FakeCgroup zram(const std::string& name, const std::string& mm_stat) {
    return {.name = name, .files = {{"mm_stat", mm_stat}}, .children = {}};
  }
  // Absent: no reading.
  std::optional<SwapReading> read() {
    source.read(at += std::chrono::seconds(1), meminfo, false, free);
    return source.latest();
  }

  std::string meminfo = kMeminfo;
  FakeCgroupfs proc, sys;
  SwapSource source;
  Instant at{std::chrono::seconds(1000)};
  std::optional<Observation> free;
};

TEST_F(SwapFiles, WithoutSwapAreReadWhereThrashingIsWatched) {
  meminfo =
      "MemTotal: 1024000 kB\nMemAvailable: 50000 kB\nActive(file): 2000 kB\n"
      "Inactive(file): 3000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n";
  EXPECT_FALSE(read());
  source.watch_without_swap(true);
  const auto seen = read();
  ASSERT_TRUE(seen);
  EXPECT_FALSE(seen->has_swap());
  EXPECT_FALSE(free) << "swap.available stays unknown";
  EXPECT_EQ(seen->cache_in_use, 5000 * 1024);
  EXPECT_EQ(seen->refaults, 12u);
  source.watch_without_swap(false);
  EXPECT_FALSE(read());
}

TEST_F(SwapFiles, AreReadIntoOneReading) {
  const auto seen = read();
  ASSERT_TRUE(seen);
  EXPECT_EQ(free->available, 600 * 1024);
  EXPECT_EQ(free->capacity, 1000 * 1024);
  EXPECT_EQ(seen->mem_available, 50000 * 1024);
  EXPECT_EQ(seen->cache_in_use, 2000 * 1024);
  EXPECT_EQ(seen->resident, 320 * 1024);
  EXPECT_EQ(seen->zram.total, 400 * 1024);
  EXPECT_EQ(seen->zram.free, 100 * 1024);
  EXPECT_EQ(seen->disk.total, 600 * 1024);
  EXPECT_EQ(seen->disk.free, 500 * 1024);
  EXPECT_EQ(seen->zram_pool.stored, 256'000 + 51'200);
  EXPECT_EQ(seen->zram_pool.memory, 70'000 + 12'288);
  EXPECT_EQ(seen->zram_pool.memory_left, 20'000 + 50 * 1024) << "one has a mem_limit";
  EXPECT_EQ(seen->incompressible, 3 * 4096);
  EXPECT_EQ(seen->zswap.stored, 90 * 1024);
  EXPECT_EQ(seen->zswap.memory, 30 * 1024);
  EXPECT_EQ(seen->zswap.memory_left, 1'024'000 * 1024 / 100 * 20 - 30 * 1024);
  EXPECT_EQ(seen->refaults, 12u);
  EXPECT_EQ(seen->reclaimed, 120u);
  EXPECT_EQ(seen->stalled_micros, 321u);
  EXPECT_EQ(seen->counted_at, seen->at);
}

TEST_F(SwapFiles, AreNotReadAgainAtOnce) {
  read();
  const Instant first = source.latest()->at;
  source.read(first + std::chrono::milliseconds(4), meminfo, false, free);
  EXPECT_EQ(source.latest()->at, first);
  source.read(first + std::chrono::milliseconds(60), meminfo, false, free);
  EXPECT_EQ(source.latest()->at, first + std::chrono::milliseconds(60));
  EXPECT_EQ(source.latest()->counted_at, first) << "counters are read more rarely";
}

TEST_F(SwapFiles, AreReadAgainWhereAReadingOfAMomentAgoWillNotDo) {
  read();
  const Instant now = source.latest()->at + std::chrono::milliseconds(1);
  source.read(now, meminfo, true, free);
  EXPECT_EQ(source.latest()->at, now);
}

TEST_F(SwapFiles, ADeviceComesAndGoes) {
  read();
  proc.write("", "swaps", "Filename\n/dev/vda2 partition 600 100 -2\n");
  meminfo = "MemTotal: 1024000 kB\nMemAvailable: 50000 kB\nSwapTotal: 600 kB\nSwapFree: 500 kB\n";
  auto seen = read();
  EXPECT_EQ(seen->zram.total, 0);
  EXPECT_EQ(seen->zram_pool.stored, 0);
  EXPECT_EQ(seen->disk.free, 500 * 1024);
  proc.write("", "swaps", kSwaps);
  meminfo = kMeminfo;
  seen = read();
  EXPECT_EQ(seen->zram.total, 400 * 1024);
  EXPECT_EQ(seen->zram_pool.stored, 256'000 + 51'200);
}

TEST_F(SwapFiles, AZramThatCannotBeReadIsZramAllTheSame) {
  proc.write("", "swaps", "Filename\n/dev/zram7 partition 1000 400 -2\n");
  const auto seen = read();
  EXPECT_EQ(seen->zram.free, 600 * 1024);
  EXPECT_EQ(seen->zram_pool.memory_left, 600 * 1024);
  EXPECT_EQ(seen->zram_pool.stored, 0);
  EXPECT_EQ(seen->disk.total, 0);
}

TEST_F(SwapFiles, WithoutSwapThereIsNoReading) {
  meminfo = "MemTotal: 1024000 kB\nMemAvailable: 5 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n";
  EXPECT_FALSE(read());
  EXPECT_FALSE(free);
}

TEST_F(SwapFiles, UnknownMemoryIsNoReading) {
  meminfo = "SwapTotal: 1000 kB\nSwapFree: 600 kB\n";
  EXPECT_FALSE(read());
  EXPECT_TRUE(free) << "swap.available is known";
}

TEST_F(SwapFiles, MissingCountersAreUnknown) {
  proc.remove("vmstat");
  proc.write("pressure", "memory", "");
  const auto seen = read();
  ASSERT_TRUE(seen);
  EXPECT_FALSE(seen->refaults);
  EXPECT_FALSE(seen->stalled_micros);
}

}  // namespace
}  // namespace headroom::observe
