// SPDX-License-Identifier: Apache-2.0
// cgroup values: how they are written, and when what is there counts as what was wanted.
#include "judge/allocatable/cgroup/cgroup_values.h"

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom {
namespace {

using Bounds = Limit<Bytes>;

std::vector<std::string> files(const CgroupValues& values) {
  std::vector<std::string> names;
  for (const CgroupSetting& setting : cgroup_settings(values))
    names.push_back(setting.file);
  return names;
}

CgroupValues everything() {
  return {.cpu_weight = CpuWeight{39},
          .cpu_max = CpuMax{.quota = Microseconds(50'000)},
          .memory_min = 1_GiB,
          .memory_low = 2_GiB,
          .memory_high = 3_GiB,
          .memory_max = 4_GiB,
          .memory_swap_max = 0_B,
          .memory_oom_group = true,
          .pids_max = Tasks{100},
          .hugetlb_max = {{64_KiB, Bytes{0}}, {2_MiB, Bounds::max()}, {1_GiB, 2_GiB}}};
}

TEST(Settings, AreFormattedAsTheKernelDoes) {
  const std::vector<CgroupSetting> expected{
      {"cpu.weight", "39"},          {"cpu.max", "50000 100000"},
      {"memory.min", "1073741824"},  {"memory.low", "2147483648"},
      {"memory.high", "3221225472"}, {"memory.max", "4294967296"},
      {"memory.swap.max", "0"},      {"memory.oom.group", "1"},
      {"pids.max", "100"},           {"hugetlb.64KB.max", "0"},
      {"hugetlb.2MB.max", "max"},    {"hugetlb.1GB.max", "2147483648"}};
  EXPECT_EQ(cgroup_settings(everything()), expected);
  EXPECT_EQ(cgroup_settings(
                {.cpu_max = CpuMax{}, .memory_oom_group = false, .pids_max = Limit<Tasks>::max()}),
            (std::vector<CgroupSetting>{
                {"cpu.max", "max 100000"}, {"memory.oom.group", "0"}, {"pids.max", "max"}}));
  EXPECT_TRUE(cgroup_settings({}).empty());
}

TEST(Diff, OfEqualsIsNothing) {
  const Difference difference = diff(everything(), everything());
  EXPECT_TRUE(difference.write.empty());
  EXPECT_TRUE(difference.unread.empty());
}

TEST(Diff, HasExactlyTheDifferingFiles) {
  CgroupValues actual = everything();
  actual.cpu_weight = CpuWeight{100};
  actual.memory_max = Bounds::max();
  actual.hugetlb_max.at(2_MiB) = Bytes{0};
  const Difference difference = diff(everything(), actual);
  EXPECT_EQ(files(difference.write),
            (std::vector<std::string>{"cpu.weight", "memory.max", "hugetlb.2MB.max"}));
  EXPECT_EQ(difference.write.memory_max, Bounds(4_GiB));  // what to write, not what was found
  EXPECT_TRUE(difference.unread.empty());
}

TEST(Diff, IgnoresUnsetValues) {
  EXPECT_TRUE(diff({}, everything()).write.empty());
}

TEST(Diff, SeparatesUnreadFromDifferingValues) {
  const Difference difference = diff(everything(), {});
  EXPECT_TRUE(difference.write.empty());
  EXPECT_EQ(difference.unread, everything());
}

TEST(Diff, ComparesMemoryAsTheKernelKeepsIt) {
  struct Case {
    const char* name;
    Bounds wanted;
    Bounds found;
    bool same;
  };
  for (const Case& c :
       {Case{"rounded_down_to_a_page", Bytes{1'000'000}, Bytes{999'424}, true},
        Case{"a_page_less", 8_KiB, 4_KiB, false},
        Case{"max_is_max", Bounds::max(), Bounds::max(), true},
        Case{"runc_says_max_with_a_number", Bounds::max(), Bytes{std::int64_t{1} << 62}, true},
        Case{"a_limit_is_not_max", 1_GiB, Bounds::max(), false},
        Case{"zero_is_not_max", 0_B, Bounds::max(), false}}) {
    const Difference difference = diff({.memory_max = c.wanted}, {.memory_max = c.found});
    EXPECT_EQ(difference.write.empty(), c.same) << c.name;
  }
  for (const Bytes page : {16_KiB, 64_KiB}) {
    EXPECT_TRUE(diff({.memory_max = 65_KiB}, {.memory_max = 64_KiB}, page).write.empty());
    EXPECT_FALSE(diff({.memory_max = 128_KiB}, {.memory_max = 64_KiB}, page).write.empty());
  }
}

TEST(Diff, RoundsHugePagesToTheirOwnSize) {
  const CgroupValues wanted{.hugetlb_max = {{2_MiB, 3_MiB}}};
  EXPECT_TRUE(diff(wanted, {.hugetlb_max = {{2_MiB, 2_MiB}}}).write.empty());
  EXPECT_FALSE(diff(wanted, {.hugetlb_max = {{2_MiB, 0_B}}}).write.empty());
}

TEST(Diff, APeriodWithoutAQuotaIsNoDifference) {
  const CgroupValues unlimited{.cpu_max = CpuMax{}};
  EXPECT_TRUE(diff(unlimited, {.cpu_max = CpuMax{.period = Microseconds(50'000)}}).write.empty());
  EXPECT_FALSE(diff(unlimited, {.cpu_max = CpuMax{.quota = Microseconds(50'000)}}).write.empty());
}

}  // namespace
}  // namespace headroom
