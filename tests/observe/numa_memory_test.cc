// SPDX-License-Identifier: Apache-2.0
// What each NUMA node has, from the files of sysfs.
#include "observe/node/capacity.h"
#include "support/fake_sysfs.h"

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

const std::string kNode = "devices/system/node/node";

TEST(NumaMemory, HasTheMemoryAndHugePagesOfEachNode) {
  const test::FakeSysfs sys;
  sys.write(kNode + "0/meminfo", "Node 0 MemTotal:       8000 kB\nNode 0 MemFree:        10 kB");
  sys.write(kNode + "0/hugepages/hugepages-2048kB/nr_hugepages", "3");
  sys.write(kNode + "0/hugepages/hugepages-1048576kB/nr_hugepages", "0");
  sys.write(kNode + "2/meminfo", "Node 2 MemTotal:       4000 kB");
  sys.write("devices/system/node/online", "0,2");
  const auto sizes = read_numa_memory(sys.root());
  ASSERT_TRUE(sizes) << sizes.error().what;
  EXPECT_EQ(*sizes, (MemorySizes{{0,
                                  {.memory = Bytes{8000 * 1024},
                                   .huge_pages = {{"hugepages-2Mi", Bytes{3 * 2048 * 1024}},
                                                  {"hugepages-1Gi", Bytes{}}}}},
                                 {2, {.memory = Bytes{4000 * 1024}}}}));
}

TEST(NumaMemory, WithoutNodesAllMemoryIsOnNode0) {
  const test::FakeSysfs sys;
  sys.write("proc/meminfo", "MemTotal:        2014124 kB");
  sys.write("kernel/mm/hugepages/hugepages-64kB/nr_hugepages", "2");
  const auto sizes = read_numa_memory(sys.root(), sys.root() / "proc");
  ASSERT_TRUE(sizes) << sizes.error().what;
  EXPECT_EQ(*sizes, (MemorySizes{{0,
                                  {.memory = Bytes{std::int64_t{2014124} * 1024},
                                   .huge_pages = {{"hugepages-64Ki", Bytes{2 * 64 * 1024}}}}}}));
}

TEST(NumaMemory, ANodeWithoutATotalIsAnError) {
  const test::FakeSysfs sys;
  sys.write(kNode + "0/meminfo", "Node 0 MemFree:        10 kB");
  EXPECT_FALSE(read_numa_memory(sys.root()));
}

}  // namespace
}  // namespace headroom::observe
