// SPDX-License-Identifier: Apache-2.0
#include "observe/node/cpu_topology.h"

#include "support/fake_sysfs.h"

#include <thread>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

using test::FakeSysfs;

std::vector<CpuLocation> places_of(const MachineCpus& machine) {
  const auto places = machine.topology.places();
  return {places.begin(), places.end()};
}

TEST(TopologyReader, TwoSocketsWithThreadsAndTheirDistances) {
  const FakeSysfs sys;
  sys.list("online", "0-7");
  sys.list("present", "0-7");
  sys.list("isolated", "6-7");
  sys.list("nohz_full", "6");
  sys.node(0, "0-1,4-5", "10 21");
  sys.node(1, "2-3,6-7", "21 10");
  for (int cpu = 0; cpu < 8; ++cpu) {
    const int core = cpu % 4;
    sys.cpu({.cpu = cpu,
             .siblings = std::to_string(core) + "," + std::to_string(core + 4),
             .socket = core / 2,
             .l3 = std::to_string(core / 2)});
  }
  const auto machine = read_topology(sys.root());
  ASSERT_TRUE(machine) << machine.error().what;
  EXPECT_EQ(places_of(*machine)[6], (CpuLocation{6, 2, 1, 1, 1}));
  EXPECT_EQ(machine->topology.count(Level::kCore), 4);
  EXPECT_EQ(machine->topology.count(Level::kUncore), 2);
  EXPECT_EQ(machine->topology.numa().distance(0, 1), 21);
  EXPECT_EQ(machine->topology.numa().distance(1, 1), 10);
  EXPECT_EQ(machine->isolated.format(), "6-7");
  EXPECT_EQ(machine->nohz_full.format(), "6");
  EXPECT_TRUE(machine->offline.empty());
}

TEST(TopologyReader, AnOfflineCpuIsNoPartOfItsCore) {
  const FakeSysfs sys;
  sys.list("online", "1-3");
  sys.list("present", "0-3");
  sys.list("nohz_full", " (null)");
  sys.node(0, "1-3", "10");
  // CPU 0's sibling: the kernel says it is alone, an older one still lists both.
  sys.cpu({.cpu = 1, .siblings = "1,3", .l3 = "0"});
  sys.cpu({.cpu = 2, .siblings = "0,2", .l3 = "0"});
  sys.cpu({.cpu = 3, .siblings = "1,3", .l3 = "0"});
  const auto machine = read_topology(sys.root());
  ASSERT_TRUE(machine) << machine.error().what;
  EXPECT_EQ(machine->topology.cpus().format(), "1-3");
  EXPECT_EQ(places_of(*machine)[1], (CpuLocation{2, 2, 0, 0, 0}));
  EXPECT_EQ(machine->offline.format(), "0");
  EXPECT_TRUE(machine->nohz_full.empty());
}

TEST(TopologyReader, WithoutL3TheSocketStandsForIt) {
  const FakeSysfs sys;
  sys.list("online", "0-1");
  sys.cpu({.cpu = 0, .siblings = "0", .socket = 0, .l3 = ""});
  sys.cpu({.cpu = 1, .siblings = "1", .socket = 3, .l3 = ""});
  const auto machine = read_topology(sys.root());
  ASSERT_TRUE(machine) << machine.error().what;
  EXPECT_EQ(places_of(*machine)[0].uncore, 0);
  EXPECT_EQ(places_of(*machine)[1].uncore, 3);
  EXPECT_EQ(places_of(*machine)[1].numa, 0) << "no node directories: all on node 0";
}

TEST(TopologyReader, LowPowerCoresBesideTheCacheAreNotTakenForPartOfIt) {
  const FakeSysfs sys;
  sys.list("online", "0-4");
  sys.node(0, "0-4", "10");
  for (int cpu = 0; cpu < 2; ++cpu)  // a performance core of two threads
    sys.cpu({.cpu = cpu, .siblings = "0-1", .l3 = "0"});
  sys.cpu({.cpu = 2, .siblings = "2", .l3 = "0"});  // efficient cores, one thread each
  for (int cpu = 3; cpu < 5; ++cpu)                 // and low-power ones without an L3
    sys.cpu({.cpu = cpu, .siblings = std::to_string(cpu), .l3 = ""});
  const auto machine = read_topology(sys.root());
  ASSERT_TRUE(machine) << machine.error().what;
  ASSERT_EQ(machine->topology.count(Level::kUncore), 2);
  EXPECT_EQ(machine->topology.groups(Level::kUncore)[0].cpus.format(), "0-2");
  EXPECT_EQ(machine->topology.groups(Level::kUncore)[1].cpus.format(), "3-4");
  EXPECT_EQ(machine->topology.count(Level::kCore), 4);
}

TEST(TopologyReader, SparseIdsAndNodesWithoutMemoryOrCpus) {
  const FakeSysfs sys;
  sys.list("online", "0,8,64");
  sys.list("present", "0,8,64");
  sys.node(0, "0", "10 40 20");
  sys.node(2, "", "40 10 30");  // memory alone
  sys.node(5, "8,64", "20 30 10");
  sys.cpu({.cpu = 0, .siblings = "0", .socket = 0, .l3 = "shared 0"});
  sys.cpu({.cpu = 8, .siblings = "8,64", .socket = 36, .l3 = "shared 8,64"});
  sys.cpu({.cpu = 64, .siblings = "8,64", .socket = 36, .l3 = "shared 8,64"});
  const auto machine = read_topology(sys.root());
  ASSERT_TRUE(machine) << machine.error().what;
  EXPECT_EQ(places_of(*machine)[2], (CpuLocation{64, 8, 36, 5, 8}));
  EXPECT_EQ(machine->topology.numa().nodes.ids(), (std::vector<int>{0, 5}));
  EXPECT_EQ(machine->topology.numa().distance(0, 5), 20);
  EXPECT_EQ(machine->topology.numa().distance(5, 2), 30);
}

TEST(TopologyReader, ACpuThatTellsNothingIsACoreOfItsOwn) {
  const FakeSysfs sys;
  sys.list("online", "0-1");
  sys.cpu({.cpu = 0, .siblings = "", .l3 = ""});
  const auto machine = read_topology(sys.root());
  ASSERT_TRUE(machine) << machine.error().what;
  EXPECT_EQ(places_of(*machine)[0], (CpuLocation{0, 0, 0, 0, 0}));
  EXPECT_EQ(places_of(*machine)[1], (CpuLocation{1, 1, 0, 0, 0}));
}

TEST(TopologyReader, SaysWhichFileCannotBe) {
  const FakeSysfs sys;
  const auto nothing = read_topology(sys.root());
  ASSERT_FALSE(nothing);
  EXPECT_NE(nothing.error().what.find("cpu/online: no CPU in it"), std::string::npos);
  sys.list("online", "0-x");
  const auto garbled = read_topology(sys.root());
  ASSERT_FALSE(garbled);
  EXPECT_NE(garbled.error().what.find("cpu/online: "), std::string::npos);
}

TEST(TopologyReader, PciDevicesAndTheirNodes) {
  const FakeSysfs sys;
  sys.write("bus/pci/devices/0000:3b:00.0/numa_node", "1");
  sys.write("bus/pci/devices/0000:00:01.0/numa_node", "-1");
  EXPECT_EQ(read_pci_devices(sys.root()),
            (std::vector<PciDevice>{{"0000:00:01.0", std::nullopt}, {"0000:3b:00.0", 1}}));
}

TEST(TopologyReader, ReadsThisMachine) {
  const auto machine = read_topology();
  ASSERT_TRUE(machine) << machine.error().what;
  EXPECT_EQ(machine->topology.cpus(), read_online_cpus().value());
  EXPECT_GE(machine->topology.cpus().size(),
            static_cast<int>(std::thread::hardware_concurrency() > 0));
  EXPECT_FALSE(machine->topology.cpus().intersects(machine->offline));
}

}  // namespace
}  // namespace headroom::observe
