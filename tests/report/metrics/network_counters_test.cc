// SPDX-License-Identifier: Apache-2.0
// Counters of network devices: what of /proc/net/dev is read, and which pods have any.
#include "report/host/network_counters.h"

#include "config/temp_dir.h"
#include "report/metrics/exposition/scrape_body.h"
#include "report/sample.h"
#include "report/summary/stats_json.h"
#include "report/view/published_views.h"
#include "support/without_ptrace.h"

#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::report {
namespace {

using namespace headroom::test;

constexpr const char* kDevices =
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop "
    "fifo colls carrier compressed\n"
    "    lo:   100      10    0    0    0     0          0         0      100      10    0    0    "
    "0     0       0          0\n"
    "  eth0: 18446744073709551615 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
    "veth12ab: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
    " bond0.7:1 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0\n";

TEST(NetworkDevices, AreReadAsCadvisorDoes) {
  const NetworkDevices expected{{"eth0", {UINT64_MAX, 2, 3, 4}, {9, 10, 11, 12}},
                                {"bond0.7", {1, 2, 3, 4}, {5, 6, 7, 8}}};
  EXPECT_EQ(parse_network_devices(kDevices), expected);
}

TEST(NetworkDevices, ALineThatIsCutShortIsLeftOut) {
  for (const char* text : {"", "eth0", "eth0:", "eth0: 1 2 3 4 5 6 7 8 9 10 11", "eth0: a 2 3"})
    EXPECT_TRUE(parse_network_devices(text).empty()) << text;
}

std::string text_of(ResponseBody& body) {
  std::string text, room(4096, '\0');
  while (const std::size_t size = body.read(room))
    text.append(room, 0, size);
  return text;
}

// A machine with the sample's cgroups; process 40 is that of the hog's container.
class NetworkReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    process("self", kDevices);
    const auto container = cgroups_.path() / "kubepods.slice/kubepods-poduid_hog.slice/app.service";
    std::filesystem::create_directories(container);
    cgroups_.write("kubepods.slice/kubepods-poduid_hog.slice/app.service/cgroup.procs", "40\n41\n");
    for (hr_record& record : table_.records)
      record.populated = 1;
  }
  void process(const std::string& name, const std::string& devices) {
    std::filesystem::create_directories(proc_.path() / name / "net");
    proc_.write(name + "/net/dev", devices);
  }
  void process_on_the_hosts_network(const std::string& name) {
    std::filesystem::create_directories(proc_.path() / name / "net");
    std::filesystem::create_hard_link(proc_.path() / "self/net/dev",
                                      proc_.path() / name / "net/dev");
  }
  NetworkReader reader() const { return NetworkReader(cgroups_.path(), proc_.path()); }

  TempDir proc_, cgroups_;
  CgroupTable table_ = sample_cgroups();
};

TEST_F(NetworkReaderTest, APodWithItsOwnNamespaceHasItsOwnDevices) {
  process("40", "eth0: 1 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0\n");
  const auto rows = network_rows(table_, reader(), [](std::size_t) { return false; });
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].pod, nullptr);
  EXPECT_EQ(rows[0].devices.size(), 2U) << "those of the node";
  ASSERT_NE(rows[1].pod, nullptr);
  EXPECT_EQ(rows[1].pod->pod->name, "hog");
  EXPECT_TRUE(table_.path(rows[1].record).ends_with("/app.service"));
  EXPECT_EQ(rows[1].devices, (NetworkDevices{{"eth0", {1, 2, 3, 4}, {5, 6, 7, 8}}}));
}

TEST_F(NetworkReaderTest, APodOnTheHostsNetworkHasNone) {
  process_on_the_hosts_network("40");
  const auto rows = network_rows(table_, reader(), [](std::size_t) { return false; });
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].pod, nullptr);
}

TEST_F(NetworkReaderTest, AProcessThatHasExitedIsNotTheHost) {
  const auto rows = network_rows(table_, reader(), [](std::size_t) { return false; });
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].pod, nullptr);
}

// With the kernel's own /proc, from a namespace without devices. Without CAP_SYS_PTRACE ns/net of a
// process with more capabilities is hidden.
TEST_F(NetworkReaderTest, TellsNamespacesApartWithoutThePrivilegeToTrace) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to make a network namespace";
  const auto names_of = [](const NetworkDevices& devices) {
    std::vector<std::string> names;
    for (const NetworkDevice& device : devices)
      names.push_back(device.name);
    return names;
  };
  const auto expected = names_of(NetworkReader(cgroups_.path()).of_node());
  if (expected.empty()) GTEST_SKIP() << "this host has no network device but the loopback";
  const std::string outside = std::to_string(::getpid());
  for (const char* cgroup : {"outside", "own"})
    std::filesystem::create_directory(cgroups_.path() / cgroup);
  cgroups_.write("outside/cgroup.procs", outside + "\n");
  EXPECT_EQ(check_without_ptrace([&] {
              if (::unshare(CLONE_NEWNET) != 0) return false;
              cgroups_.write("own/cgroup.procs", std::to_string(::getpid()) + "\n");
              char link[2];
              if (::readlink(("/proc/" + outside + "/ns/net").c_str(), link, sizeof link) >= 0)
                return false;
              const NetworkReader reader(cgroups_.path());
              const auto others = reader.of_cgroup("/outside");
              return others && names_of(*others) == expected &&
                     reader.of_cgroup("/own") == NetworkDevices{};
            }),
            0);
}

TEST_F(NetworkReaderTest, IsServedByCadvisorsNames) {
  process("40", "eth0: 1 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0\n");
  const auto views = std::make_shared<PublishedViews>();
  views->cgroups.publish([&](CgroupTable& next, const CgroupTable*) { next = table_; });
  const HostReaders host{.network = reader(),
                         .processes = ProcessReader(cgroups_.path()),
                         .filesystems = FilesystemSpaces({})};
  const auto text = [&](bool cadvisor) {
    ScrapeSetup setup;
    setup.cgroups = views->cgroups.latest();
    setup.cadvisor_families = cadvisor;
    setup.host = &host;
    setup.exclude = {"container_network_receive_*"};
    ScrapeBody body(std::move(setup));
    return text_of(body);
  };
  const std::string sample =
      "container_network_transmit_packets_dropped_total{container=\"app\",id=\"/kubepods.slice/"
      "kubepods-poduid_hog.slice/app.service\",image=\"\",name=\"\",namespace=\"default\",pod="
      "\"hog\",interface=\"eth0\"} 8\n";
  EXPECT_NE(text(true).find(sample), std::string::npos) << text(true);
  EXPECT_EQ(text(true).find("container_network_receive"), std::string::npos) << "excluded";
  EXPECT_EQ(text(false).find("container_network"), std::string::npos);
}

TEST(NetworkJson, HasEth0AsTheDefaultAndEveryInterface) {
  const WallTime time{};
  EXPECT_TRUE(network_json({}, time).is_null());
  const Json json = network_json({{"eth0", {1, 2, 3, 4}, {5, 6, 7, 8}}, {"eth1", {}, {}}}, time);
  EXPECT_EQ(json["name"], "eth0");
  EXPECT_EQ(json["rxBytes"], 1);
  EXPECT_EQ(json["txErrors"], 7);
  EXPECT_EQ(json["interfaces"].size(), 2U);
  const Json without = network_json({{"ens3", {}, {}}}, time);
  EXPECT_FALSE(without.contains("rxBytes"));
  EXPECT_EQ(without["name"], "");
}

}  // namespace
}  // namespace headroom::report
