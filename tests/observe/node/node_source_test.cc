// SPDX-License-Identifier: Apache-2.0
// The node's signals from fake /proc and cgroup files.
#include "observe/node/node_source.h"

#include "observe/cgroup/cgroup_files.h"
#include "support/fake_cgroupfs.h"

#include <unistd.h>

#include <array>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

using test::FakeCgroup;
using test::FakeCgroupfs;

constexpr Instant kNow{std::chrono::seconds(1000)};

// A tree serves as /proc too: directories with files.
struct World {
  FakeCgroupfs cgroups;
  FakeCgroupfs proc;
  World(const std::string& stat, const std::string& meminfo, const std::string& loadavg,
        const std::string& pid_max, const std::string& threads_max)
      : cgroups({.name = "", .files = {{"memory.stat", stat}}, .children = {}}),
        proc({.name = "",
              .files = {{"meminfo", meminfo}, {"loadavg", loadavg}},
              .children = {
                  {.name = "sys",
                   .files = {},
                   .children = {{.name = "kernel",
                                 .files = {{"pid_max", pid_max}, {"threads-max", threads_max}},
                                 .children = {}}}}}}) {}
  void set_watermarks(const std::string& min_free_kbytes, const std::string& zoneinfo) {
    proc.add("sys",
             {.name = "vm", .files = {{"min_free_kbytes", min_free_kbytes}}, .children = {}});
    proc.write("", "zoneinfo", zoneinfo);
  }
  NodeSource source(bool without_hugepages = true) const {
    return NodeSource({.cgroup_root = cgroups.root(),
                       .proc = proc.root(),
                       .nodefs = cgroups.root(),
                       .without_hugepages = without_hugepages,
                       .clock = [] { return kNow; }});
  }
};

constexpr const char* kMeminfo =
    "MemTotal:        1000 kB\nMemFree:          10 kB\nHugePages_Total:       1\n"
    "Hugepagesize:        100 kB\nHugetlb:             100 kB\n";
constexpr const char* kLoad = "0.00 0.01 0.05 3/207 4711\n";

struct MemoryCase {
  const char* name;
  const char* stat;
  const char* meminfo;
  bool without_hugepages;
  std::optional<std::int64_t> available;
};

TEST(NodeSource, MemoryAvailable) {
  const MemoryCase cases[] = {
      {"total_less_working_set", "anon 102400\nfile 204800\ninactive_file 51200\n", kMeminfo, false,
       1'024'000 - 256'000},
      {"less_huge_pages", "anon 102400\nfile 204800\ninactive_file 51200\n", kMeminfo, true,
       1'024'000 - 256'000 - 102'400},
      {"order_does_not_matter", "inactive_file 51200\nfile 204800\nanon 102400\n", kMeminfo, false,
       768'000},
      {"inactive_above_usage_is_an_empty_working_set", "anon 0\nfile 10\ninactive_file 20\n",
       kMeminfo, false, 1'024'000},
      {"working_set_above_capacity_is_zero", "anon 9999999\nfile 0\ninactive_file 0\n", kMeminfo,
       false, 0},
      {"no_inactive_file", "anon 1\nfile 2\n", kMeminfo, false, std::nullopt},
      {"empty_stat", "", kMeminfo, false, std::nullopt},
      {"no_total", "anon 1\nfile 2\ninactive_file 0\n", "MemFree: 10 kB\n", false, std::nullopt},
      {"total_in_another_unit", "anon 1\nfile 2\ninactive_file 0\n", "MemTotal: 10 MB\n", false,
       std::nullopt},
  };
  for (const MemoryCase& c : cases) {
    World world(c.stat, c.meminfo, kLoad, "32768\n", "1000\n");
    NodeSource source = world.source(c.without_hugepages);
    Observations all;
    source.read_memory(all);
    const auto& seen = of(all, Signal::kMemoryAvailable);
    ASSERT_EQ(seen.has_value(), c.available.has_value()) << c.name;
    if (!seen) continue;
    EXPECT_EQ(seen->available, *c.available) << c.name;
    EXPECT_EQ(seen->capacity, 1'024'000) << c.name;
    EXPECT_EQ(seen->at, kNow) << c.name;
  }
}

struct AllocatableCase {
  const char* name;
  const char* meminfo;
  const char* min_free;  // kB
  std::optional<std::int64_t> kilobytes;
  const char* zones = "Node 0, zone Normal\n min 10\n managed 25000\n protection: (0, 0)\n";
};

TEST(NodeSource, KernelMemAvailable) {
#define TOTAL "MemTotal: 100000 kB\n"
#define CACHE "Active(file): 300 kB\nInactive(file): 500 kB\n"
  const auto page = static_cast<std::int64_t>(sysconf(_SC_PAGESIZE)) / 1024;
  const AllocatableCase cases[] = {
      // A low watermark of 50 kB: so much of the page cache and of the slab is in use.
      {"above_the_reserve", TOTAL "MemFree: 1000 kB\n" CACHE "KReclaimable: 200 kB\n", "40\n",
       1000 - 10 * page + 800 - 50 + 200 - 50},
      {"half_of_what_is_small_is_in_use", TOTAL "MemFree: 1000 kB\n" CACHE "KReclaimable: 60 kB\n",
       "400\n", 1000 - 10 * page + 800 - 400 + 30},
      {"never_below_zero", TOTAL "MemFree: 30 kB\n" CACHE "KReclaimable: 0 kB\n", "10000\n", 0,
       "Node 0, zone Normal\n min 5000\n managed 25000\n"},
      {"not_MemAvailable_which_counts_from_the_high_watermarks",
       TOTAL "MemFree: 100 kB\nMemAvailable: 1 kB\n" CACHE "KReclaimable: 0 kB\n", "0\n",
       900 - 10 * page},
      {"MemAvailable_where_min_free_is_unknown",
       TOTAL "MemFree: 100 kB\nMemAvailable: 7 kB\n" CACHE "KReclaimable: 0 kB\n", "", 7},
      {"MemAvailable_where_the_zones_are_unknown",
       TOTAL "MemFree: 100 kB\nMemAvailable: 7 kB\n" CACHE "KReclaimable: 0 kB\n", "40\n", 7, ""},
      {"MemAvailable_where_a_part_is_unknown", TOTAL "MemFree: 100 kB\nMemAvailable: 7 kB\n" CACHE,
       "40\n", 7},
      {"unknown", TOTAL "MemFree: 100 kB\n", "40\n", std::nullopt},
  };
  for (const AllocatableCase& c : cases) {
    World world("", c.meminfo, kLoad, "1\n", "1\n");
    world.set_watermarks(c.min_free, c.zones);
    NodeSource source = world.source();
    Observations all;
    source.read_memory(all);
    const auto& kernel = of(all, Signal::kKernelMemAvailable);
    ASSERT_EQ(kernel.has_value(), c.kilobytes.has_value()) << c.name;
    if (kernel) EXPECT_EQ(kernel->available, *c.kilobytes * 1024) << c.name;
  }
}

// memory.min keeps the page cache of a slice that holds no more than that.
TEST(NodeSource, PageCacheThatMemoryMinKeepsIsNotAvailable) {
  struct Case {
    const char* name;
    std::uint64_t min, usage, cache;
    std::int64_t kept;
  };
  const Case cases[] = {
      {"no_protection", 0, 900 << 10, 800 << 10, 0},
      {"all_of_it", 1000 << 10, 700 << 10, 600 << 10, 600 << 10},
      {"all_of_it_whatever_the_usage", HR_NO_LIMIT, 700 << 10, 600 << 10, 600 << 10},
      {"but_what_is_above", 500 << 10, 900 << 10, 600 << 10, 200 << 10},
      {"none_where_the_rest_alone_is_above", 100 << 10, 900 << 10, 600 << 10, 0},
      {"unknown_is_not_kept", HR_UNKNOWN, 900 << 10, 600 << 10, 0},
  };
  World world("",
              TOTAL
              "MemFree: 1000 kB\nActive(file): 0 kB\nInactive(file): 5000 kB\n"
              "KReclaimable: 0 kB\n",
              kLoad, "1\n", "1\n");
  world.set_watermarks("0\n", "Node 0, zone Normal\n min 0\n managed 25000\n");
  for (const Case& c : cases) {
    NodeSource source = world.source();
    std::array<hr_record, 2> records{};
    records[1].valid = HR_MEMORY_USAGE | HR_MEMORY_STAT | HR_MEMORY_LIMITS;
    records[1].memory_min = c.min;
    records[1].memory_usage = c.usage;
    records[1].inactive_file = c.cache;
    const std::uint32_t positions[] = {1};
    source.use_top_level(records, positions);
    Observations all;
    source.read_memory(all);
    EXPECT_EQ(of(all, Signal::kKernelMemAvailable)->available, (6000 << 10) - c.kept) << c.name;
  }
}

TEST(NodeSource, WhatTheKernelHoldsIsNotInMemoryAvailable) {
  const char* const meminfo =
      "MemTotal:        1000 kB\nMemFree:         200 kB\nMemAvailable:    250 kB\n"
      "Hugetlb:         100 kB\n";
  World world("anon 102400\nfile 204800\ninactive_file 51200\n", meminfo, kLoad, "1\n", "1\n");
  NodeSource source = world.source();
  Observations all;
  source.read_memory(all);
  const auto& kernel = of(all, Signal::kKernelMemAvailable);
  ASSERT_TRUE(kernel);
  EXPECT_EQ(kernel->available, 256'000);
  EXPECT_EQ(kernel->capacity, 1'024'000);
  EXPECT_EQ(kernel->at, kNow);
  // 1000 kB less 200 free, 300 of anon and file, and 100 of huge pages.
  EXPECT_EQ(source.unaccounted(), Bytes{409'600});
  world.proc.write("", "meminfo", "MemTotal:        1000 kB\n");
  source.read_memory(all);
  EXPECT_FALSE(kernel) << "unknown, not zero";
  EXPECT_FALSE(source.unaccounted());
  EXPECT_TRUE(of(all, Signal::kMemoryAvailable));
}

struct PidCase {
  const char* name;
  const char* loadavg;
  const char* pid_max;
  const char* threads_max;
  std::optional<std::int64_t> available;
  std::int64_t capacity;
};

TEST(NodeSource, PidAvailable) {
  const PidCase cases[] = {
      {"the_smaller_limit", kLoad, "32768\n", "1000\n", 793, 1000},
      {"pid_max_is_smaller", kLoad, "500\n", "1000\n", 293, 500},
      {"one_limit_will_do", kLoad, "", "1000\n", 793, 1000},
      {"no_limit_is_unknown", kLoad, "", "", std::nullopt, 0},
      {"no_load_is_unknown", "", "500\n", "1000\n", std::nullopt, 0},
      {"load_cut_short", "0.00 0.01 0.05 3/20", "500\n", "1000\n", std::nullopt, 0},
      {"more_tasks_than_allowed", "0 0 0 1/600 1\n", "500\n", "1000\n", 0, 500},
  };
  for (const PidCase& c : cases) {
    World world("", kMeminfo, c.loadavg, c.pid_max, c.threads_max);
    NodeSource source = world.source();
    Observations all;
    source.read_pids(all);
    const auto& seen = of(all, Signal::kPidAvailable);
    ASSERT_EQ(seen.has_value(), c.available.has_value()) << c.name;
    if (!seen) continue;
    EXPECT_EQ(seen->available, *c.available) << c.name;
    EXPECT_EQ(seen->capacity, c.capacity) << c.name;
  }
}

struct SwapCase {
  const char* name;
  const char* meminfo;
  std::optional<std::int64_t> available;
  std::int64_t capacity;
};

TEST(NodeSource, Swap) {
  for (const SwapCase& c :
       {SwapCase{"what_is_free",
                 "MemTotal: 9 kB\nSwapCached: 7 kB\nSwapTotal: 100 kB\nSwapFree: 40 kB\n", 40'960,
                 102'400},
        SwapCase{"none_left_is_known", "SwapTotal: 100 kB\nSwapFree: 0 kB\n", 0, 102'400},
        SwapCase{"no_swap_is_unknown", "SwapTotal: 0 kB\nSwapFree: 0 kB\n", std::nullopt, 0},
        SwapCase{"half_a_file_is_unknown", "SwapTotal: 100 kB\n", std::nullopt, 0}}) {
    World world("", c.meminfo, kLoad, "1\n", "1\n");
    Observations all;
    NodeSource source = world.source();
    source.read_memory(all);
    source.read_swap(all);
    const auto& seen = of(all, Signal::kSwapAvailable);
    ASSERT_EQ(seen.has_value(), c.available.has_value()) << c.name;
    if (!seen) continue;
    EXPECT_EQ(seen->available, *c.available) << c.name;
    EXPECT_EQ(seen->capacity, c.capacity) << c.name;
  }
}

TEST(NodeSource, Filesystems) {
  World world("", kMeminfo, kLoad, "1\n", "1\n");
  Observations all;
  world.source().read_filesystems(all);
  const auto& bytes = of(all, Signal::kNodeFsAvailable);
  ASSERT_TRUE(bytes);
  EXPECT_GT(bytes->capacity, 0);
  EXPECT_GE(bytes->available, 0);
  EXPECT_LE(bytes->available, bytes->capacity);
  EXPECT_FALSE(of(all, Signal::kImageFsAvailable)) << "not asked for";
  EXPECT_FALSE(of(all, Signal::kContainerFsInodesFree));
}

TEST(NodeSource, AFilesystemThatIsNotThereIsUnknown) {
  NodeSource source({.nodefs = "/nonexistent", .imagefs = "/nonexistent/too"});
  Observations all;
  source.read_filesystems(all);
  EXPECT_FALSE(of(all, Signal::kNodeFsAvailable));
  EXPECT_FALSE(of(all, Signal::kImageFsInodesFree));
}

TEST(NodeSource, Allocatable) {
  World world("", kMeminfo, kLoad, "1\n", "1\n");
  const NodeSource source = world.source();
  hr_record pods = unknown_record(5, 1);
  pods.valid = HR_MEMORY_USAGE | HR_MEMORY_STAT | HR_MEMORY_LIMITS;
  pods.memory_usage = 600;
  pods.inactive_file = 100;
  pods.memory_max = 2000;
  const auto seen = [&](const hr_record* record) {
    Observations all;
    source.read_allocatable(record, kNow, all);
    return of(all, Signal::kAllocatableMemoryAvailable);
  };
  ASSERT_TRUE(seen(&pods));
  EXPECT_EQ(seen(&pods)->available, 1500);
  EXPECT_EQ(seen(&pods)->capacity, 2000);
  EXPECT_FALSE(seen(nullptr));
  hr_record over = pods;
  over.memory_usage = 9000;
  EXPECT_EQ(seen(&over)->available, 0);
  hr_record unlimited = pods;
  unlimited.memory_max = HR_NO_LIMIT;
  EXPECT_FALSE(seen(&unlimited));
  hr_record blind = pods;
  blind.valid &= ~static_cast<unsigned>(HR_MEMORY_STAT);
  EXPECT_FALSE(seen(&blind));
}

TEST(NodeSource, ThisMachineHasPidsAndAFilesystem) {
  NodeSource source(NodeSource::Options{});
  const Observations all = source.read_all();
  EXPECT_TRUE(of(all, Signal::kPidAvailable));
  EXPECT_TRUE(of(all, Signal::kNodeFsAvailable));
  EXPECT_TRUE(source.memory_capacity());
}

}  // namespace
}  // namespace headroom::observe
