// SPDX-License-Identifier: Apache-2.0
// Capacity from sysfs, on trees written for the purpose.
#include "observe/node/capacity.h"

#include "config/temp_dir.h"

#include <fstream>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

void put(const std::filesystem::path& path, const char* text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

TEST(Capacity, CountsOnlineCpus) {
  test::TempDir sys;
  EXPECT_EQ(online_cpus(sys.path()), std::nullopt) << "no such file: not known";
  put(sys.path() / "devices/system/cpu/online", "0-2,5,8-9\n");
  EXPECT_EQ(online_cpus(sys.path()), 6);
  put(sys.path() / "devices/system/cpu/online", "what\n");
  EXPECT_EQ(online_cpus(sys.path()), std::nullopt);
}

TEST(Capacity, KnowsEveryPoolOfHugePages) {
  test::TempDir sys;
  EXPECT_TRUE(huge_page_pools(sys.path()).empty());
  const auto pools = sys.path() / "kernel/mm/hugepages";
  put(pools / "hugepages-2048kB/nr_hugepages", "3\n");
  put(pools / "hugepages-1048576kB/nr_hugepages", "0\n");
  put(pools / "other/nr_hugepages", "7\n");
  put(pools / "hugepages-64kB/nr_hugepages", "what\n");
  const std::map<Bytes, Bytes> expected{{2_MiB, 6_MiB}, {1_GiB, 0_B}};
  EXPECT_EQ(huge_page_pools(sys.path()), expected);
}

TEST(Capacity, CountsSocketsWithAnOnlineCpu) {
  test::TempDir sys;
  EXPECT_EQ(online_sockets(sys.path()), 1) << "not known";
  const auto cpus = sys.path() / "devices/system/cpu";
  put(cpus / "online", "0-2\n");
  put(cpus / "cpu0/topology/physical_package_id", "0\n");
  put(cpus / "cpu1/topology/physical_package_id", "1\n");
  put(cpus / "cpu2/topology/physical_package_id", "0\n");
  put(cpus / "cpu3/topology/physical_package_id", "2\n");
  EXPECT_EQ(online_sockets(sys.path()), 2);
}

TEST(Capacity, KnowsTheNodesThatHaveMemory) {
  test::TempDir sys;
  EXPECT_EQ(memory_nodes(sys.path()), 0u) << "not known";
  put(sys.path() / "devices/system/node/has_memory", "0,2-3,63-64\n");
  EXPECT_EQ(memory_nodes(sys.path()), 0x800000000000000dull);
}

TEST(FillRate, IsScaledToAllCpusAndBoundByTheMemoryChannels) {
  constexpr std::int64_t kGiB = std::int64_t{1} << 30;
  constexpr std::int64_t kSocket = 614'400'000'000;
  struct Case {
    const char* name;
    double measured;
    std::int64_t threads, cpus, sockets, expected;
  };
  for (const Case& each : {Case{"two CPUs, both measured", 8.0 * kGiB, 2, 2, 1, 8 * kGiB},
                           Case{"a slow emulator", 1.0 * kGiB, 2, 2, 1, 4 * kGiB},
                           Case{"nothing could be measured", 0, 8, 64, 2, 4 * kGiB},
                           Case{"64 CPUs, eight measured", 16.0 * kGiB, 8, 64, 1, 128 * kGiB},
                           Case{"256 CPUs on one socket", 40.0 * kGiB, 8, 256, 1, kSocket},
                           Case{"256 CPUs on two", 40.0 * kGiB, 8, 256, 2, 2 * kSocket}})
    EXPECT_EQ(fill_rate(each.measured, each.threads, each.cpus, each.sockets), each.expected)
        << each.name;
}

TEST(FillRate, FollowsTheCpusOnline) {
  constexpr std::int64_t kGiB = std::int64_t{1} << 30;
  test::TempDir sys;
  const FillMeasurement measured{.bytes_per_second = 16.0 * kGiB, .threads = 8};
  put(sys.path() / "devices/system/cpu/online", "0-7\n");
  EXPECT_EQ(fastest_fill(measured, sys.path()), 16 * kGiB);
  put(sys.path() / "devices/system/cpu/online", "0-63\n");
  EXPECT_EQ(fastest_fill(measured, sys.path()), 128 * kGiB);
}

TEST(FillRate, IsMeasuredOnThisMachine) {
  const std::int64_t rate = fastest_fill(measure_fill());
  EXPECT_GE(rate, std::int64_t{4} << 30);
  EXPECT_LE(rate, online_sockets() * 614'400'000'000);
}

}  // namespace
}  // namespace headroom::observe
