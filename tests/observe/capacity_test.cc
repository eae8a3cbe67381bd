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

}  // namespace
}  // namespace headroom::observe
