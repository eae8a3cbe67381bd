// SPDX-License-Identifier: Apache-2.0
// What is read of the host during a scrape: processes and their open files, filesystems.
#include "report/metrics/exposition/host_families.h"

#include "config/temp_dir.h"
#include "report/sample.h"

#include <unistd.h>

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

namespace headroom::report {
namespace {

using namespace headroom::test;

// A cgroup tree with one cgroup, "pod".
class ProcessReaderTest : public testing::Test {
 protected:
  void has(const std::string& pids) {
    std::filesystem::create_directories(cgroups_.path() / "pod");
    cgroups_.write("pod/cgroup.procs", pids);
  }
  ProcessReader reader() const { return ProcessReader(cgroups_.path(), "/proc"); }

  TempDir cgroups_;
};

TEST_F(ProcessReaderTest, CountsTheOpenFilesOfThisProcess) {
  has(std::to_string(::getpid()) + "\n");
  const auto before = reader().of_cgroup("/pod");
  ASSERT_TRUE(before && before->descriptors);
  EXPECT_EQ(before->processes, 1U);
  const int opened = ::dup(0);
  const auto after = reader().of_cgroup("/pod");
  ::close(opened);
  ASSERT_TRUE(after && after->descriptors);
  EXPECT_EQ(*after->descriptors, *before->descriptors + 1);
}

TEST_F(ProcessReaderTest, AProcessThatHasEndedHasNoOpenFiles) {
  has("4194999\n4194998\n");  // above pid_max
  EXPECT_EQ(reader().of_cgroup("/pod"), (ProcessCounts{.processes = 2, .descriptors = 0}));
  EXPECT_EQ(reader().processes_of("/pod"), 2U);
}

TEST_F(ProcessReaderTest, ACgroupWithoutAListIsUnknown) {
  EXPECT_FALSE(reader().of_cgroup("/gone"));
  EXPECT_FALSE(reader().processes_of("/gone"));
  has("");
  EXPECT_EQ(reader().of_cgroup("/pod"), (ProcessCounts{.processes = 0, .descriptors = 0}));
}

constexpr const char* kMounts =
    "22 1 0:20 / /proc rw - proc proc rw\n"
    "23 1 254:1 / / rw,relatime - ext4 /dev/vda1 rw\n"
    "24 23 254:16 / /var/lib rw - xfs /dev/vdb rw\n"
    "25 24 0:50 / /var/lib/kubelet rw - tmpfs tmpfs rw\n"
    "26 24 254:32 / /var/lib/kubelet rw - ext4 /dev/vdc\\040x rw\n";

TEST(DeviceOf, IsThatOfTheLastMountAbove) {
  EXPECT_EQ(device_of("/var/log", kMounts), "/dev/vda1");
  EXPECT_EQ(device_of("/var/lib/containerd", kMounts), "/dev/vdb");
  EXPECT_EQ(device_of("/var/library", kMounts), "/dev/vda1");
  EXPECT_EQ(device_of("/var/lib/kubelet/pods", kMounts), "/dev/vdc x") << "it hides the tmpfs";
  EXPECT_EQ(device_of("/var", ""), "");
}

TEST(FilesystemSpaces, AreReadWhereTheSignalIsKnown) {
  const TempDir directory;
  const FilesystemSpaces spaces({{Signal::kNodeFsAvailable, directory.path()},
                                 {Signal::kImageFsAvailable, directory.path()},
                                 {Signal::kContainerFsAvailable, "/nowhere/at/all"}});
  Observations observations{};
  EXPECT_TRUE(spaces.all(observations).empty()) << "it may hang";
  for (const Signal signal :
       {Signal::kNodeFsAvailable, Signal::kImageFsAvailable, Signal::kContainerFsAvailable})
    of(observations, signal) = Observation{1, 2, {}};
  const auto all = spaces.all(observations);
  ASSERT_EQ(all.size(), 1U) << "one device, and one that does not exist";
  EXPECT_GT(all[0].capacity, 0U);
  EXPECT_LE(all[0].used, all[0].capacity);
  EXPECT_FALSE(spaces.of(Signal::kContainerFsAvailable, observations));
}

TEST(HostSamples, AreThoseOfTheRecordsThatHaveSeries) {
  const TempDir cgroups;
  const CgroupTable table = sample_cgroups();
  const auto app = std::filesystem::path("kubepods.slice/kubepods-poduid_hog.slice/app.service");
  std::filesystem::create_directories(cgroups.path() / app);
  cgroups.write((app / "cgroup.procs").string(), "4194999\n");
  cgroups.write("cgroup.procs", "4194998\n");
  const HostReaders readers{.network = NetworkReader(cgroups.path(), cgroups.path()),
                            .processes = ProcessReader(cgroups.path(), cgroups.path()),
                            .filesystems = FilesystemSpaces({})};
  HostSelection selection{
      .is_wanted = [](HostSource) { return true; },
      .is_pod_internal = [](std::size_t) { return false; },
      .has_series = [&](std::size_t record) { return table.path(record) != "/"; }};
  const HostSamples samples(table, readers, {}, selection);
  const auto processes = samples.of(HostSource::kProcesses);
  ASSERT_EQ(processes.size(), 1U);
  EXPECT_TRUE(table.path(processes[0].record).ends_with("/app.service"));
  EXPECT_EQ(processes[0].values[0], 1);
  EXPECT_EQ(processes[0].values[1], 0);
  EXPECT_TRUE(samples.of(HostSource::kFilesystems).empty());
  selection.is_wanted = [](HostSource source) { return source != HostSource::kProcesses; };
  EXPECT_TRUE(HostSamples(table, readers, {}, selection).of(HostSource::kProcesses).empty());
}

}  // namespace
}  // namespace headroom::report
