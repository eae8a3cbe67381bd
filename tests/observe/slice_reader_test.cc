// SPDX-License-Identifier: Apache-2.0
// A slice's knobs, controllers and use, read from a tree of files.
#include "observe/cgroup/slice_reader.h"

#include "observe/cgroup/cgroup_settings_watch.h"
#include "support/fake_cgroupfs.h"

#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

using test::FakeCgroupfs;
using Words = std::vector<std::string>;

FakeCgroupfs tree(std::map<std::string, std::string> files) {
  return FakeCgroupfs(
      {.name = "",
       .files = {},
       .children = {{.name = "a.slice", .files = std::move(files), .children = {}}}});
}

const CgroupValues kWanted{.cpu_weight = CpuWeight{1},
                           .cpu_max = CpuMax{},
                           .memory_min = Bytes{0},
                           .memory_low = Bytes{0},
                           .memory_high = Bytes{0},
                           .memory_max = Bytes{0},
                           .memory_swap_max = Bytes{0},
                           .memory_oom_group = false,
                           .pids_max = Tasks{1},
                           .hugetlb_max = {{2_MiB, Bytes{0}}, {1_GiB, Bytes{0}}}};

TEST(SliceReader, TheWeightOfAnIdleSliceIsNotCompared) {
  const auto weight_of = [](const char* idle, const char* weight) {
    const auto fs = tree({{"cpu.idle", idle}, {"cpu.weight", weight}});
    const auto reading =
        SliceReader(fs.root(), {"cpu"}).read("/a.slice", {.cpu_weight = CpuWeight{39}});
    return reading.values ? reading.values->cpu_weight : std::nullopt;
  };
  EXPECT_EQ(weight_of("1\n", "0\n"), CpuWeight{39});
  EXPECT_EQ(weight_of("1\n", "1\n"), CpuWeight{39}) << "since Linux 6.12";
  EXPECT_EQ(weight_of("0\n", "1\n"), CpuWeight{1});
}

TEST(SliceReader, ReadsEveryKnobThatIsWanted) {
  const auto fs = tree({{"cgroup.controllers", "cpuset cpu io memory hugetlb pids\n"},
                        {"cpu.weight", "39\n"},
                        {"cpu.max", "50000 100000\n"},
                        {"memory.min", "4096\n"},
                        {"memory.low", "8192\n"},
                        {"memory.high", "max\n"},
                        {"memory.max", "1073741824\n"},
                        {"memory.swap.max", "max\n"},
                        {"memory.oom.group", "1\n"},
                        {"pids.max", "100\n"},
                        {"hugetlb.2MB.max", "2097152\n"},
                        {"memory.current", "12288\n"},
                        {"pids.current", "7\n"},
                        {"cpu.stat", "usage_usec 1500\nuser_usec 1000\n"}});
  const SliceReader reader(fs.root(), {"cpuset", "cpu", "io", "memory", "pids"});
  const SliceReading reading = reader.read("/a.slice", kWanted);
  ASSERT_TRUE(reading.values);
  EXPECT_EQ(*reading.values, (CgroupValues{.cpu_weight = CpuWeight{39},
                                           .cpu_max = CpuMax{.quota = Microseconds(50'000)},
                                           .memory_min = 4_KiB,
                                           .memory_low = 8_KiB,
                                           .memory_high = Limit<Bytes>::max(),
                                           .memory_max = 1_GiB,
                                           .memory_swap_max = Limit<Bytes>::max(),
                                           .memory_oom_group = true,
                                           .pids_max = Tasks{100},
                                           .hugetlb_max = {{2_MiB, 2_MiB}}}));
  EXPECT_EQ(reading.missing_controllers, Words{});
  EXPECT_EQ(reading.memory, 12_KiB);
  EXPECT_EQ(reading.tasks, Tasks{7});
  EXPECT_EQ(reading.cpu, std::chrono::microseconds(1500));
}

TEST(SliceReader, WhatDoesNotParseOrIsNotThereIsNotKnown) {
  const auto fs = tree({{"cgroup.controllers", "memory\n"},
                        {"cpu.weight", "much\n"},
                        {"memory.max", ""},
                        {"cpu.max", "5\n"},
                        {"memory.current", "-1\n"}});
  const SliceReader reader(fs.root(), {"cpu", "memory", "pids", "misc"});
  const SliceReading reading = reader.read("/a.slice", kWanted);
  ASSERT_TRUE(reading.values);
  EXPECT_TRUE(reading.values->empty());
  EXPECT_EQ(reading.missing_controllers, (Words{"cpu", "pids"}))
      << "misc is none of those it needs";
  EXPECT_FALSE(reading.memory);
  EXPECT_FALSE(reading.cpu);
}

TEST(SliceReader, KnowsWhatIsNotThere) {
  const auto fs = tree({});
  const SliceReader reader(fs.root(), {"cpu"});
  EXPECT_FALSE(reader.read("/b.slice", kWanted).values);
}

TEST(CgroupSettingsWatch, TellsOfWrittenKnobsAndRemovedCgroupsAlone) {
  auto fs = tree({{"memory.max", "max\n"}, {"memory.events", "low 0\n"}});
  CgroupSettingsWatch watch(fs.root());
  watch.watch("/b.slice");
  watch.watch("/a.slice");
  watch.watch("/a.slice");
  EXPECT_FALSE(watch.drain());
  fs.write("a.slice", "memory.events", "low 1\n");
  EXPECT_FALSE(watch.drain());
  fs.write("a.slice", "memory.max", "4096\n");
  EXPECT_TRUE(watch.drain());
  EXPECT_FALSE(watch.drain());
  fs.remove("a.slice");
  EXPECT_TRUE(watch.drain());
}

}  // namespace
}  // namespace headroom::observe
