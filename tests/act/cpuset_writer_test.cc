// SPDX-License-Identifier: Apache-2.0
// Which cgroups are systemd's, how CPUs are set through systemd, and what is written elsewhere.
#include "act/cpus/cpuset_writer.h"

#include "config/temp_dir.h"
#include "support/make_again.h"
#include "support/private_bus.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace headroom::act {
namespace {

namespace fs = std::filesystem;

CpuSet cpus(const char* list) {
  return CpuSet::parse(list).value();
}

std::string text_of(const fs::path& file) {
  std::string line;
  std::getline(std::ifstream(file), line);
  return line;
}

TEST(CpusetWriter, UnitsAreFoundBelowSlicesOnly) {
  EXPECT_EQ(unit_of("/kubepods.slice"), "kubepods.slice");
  EXPECT_EQ(unit_of("/kubepods.slice/kubepods-podx.slice/web.service"), "web.service");
  EXPECT_EQ(unit_of("/kubepods.slice/_cpu.service"), "cpu.service");
  EXPECT_EQ(unit_of("/kubepods/podx"), std::nullopt);
  EXPECT_EQ(unit_of("/a.slice/b.service/c.scope"), std::nullopt) << "delegated: not systemd's";
}

TEST(CpusetWriter, BitsStartAtTheFirstByte) {
  EXPECT_EQ(as_bitmap({}), (std::vector<std::uint8_t>{}));
  EXPECT_EQ(as_bitmap(cpus("0,7")), (std::vector<std::uint8_t>{0x81}));
  EXPECT_EQ(as_bitmap(cpus("1,8-9,23")), (std::vector<std::uint8_t>{0x02, 0x03, 0x80}));
}

SeenCgroup see(const test::TempDir& root, const std::string& path) {
  return {.path = path, .id = cgroup_id_at(root.path().native() + path).value()};
}

TEST(CpusetWriter, AFileOfItsOwnIsWritten) {
  const test::TempDir root;
  fs::create_directories(root.path() / "kubepods/podx");
  root.write("kubepods/podx/cpuset.cpus", "\n");
  CpusetWriter writer(root.path());
  ASSERT_TRUE(writer.write(see(root, "/kubepods/podx"), cpus("2-3")));
  EXPECT_EQ(text_of(root.path() / "kubepods/podx/cpuset.cpus"), "2-3");
}

TEST(CpusetWriter, NodesAreWrittenBesideTheCpus) {
  const test::TempDir root;
  fs::create_directories(root.path() / "kubepods/podx");
  root.write("kubepods/podx/cpuset.mems", "\n");
  CpusetWriter writer(root.path());
  const SeenCgroup pod = see(root, "/kubepods/podx");
  ASSERT_TRUE(writer.write_nodes(pod, NodeSet::of(0) | NodeSet::of(1)));
  EXPECT_EQ(text_of(root.path() / "kubepods/podx/cpuset.mems"), "0-1");
  ASSERT_TRUE(writer.write_nodes(pod, {}));
  EXPECT_EQ(text_of(root.path() / "kubepods/podx/cpuset.mems"), "");
}

TEST(CpusetWriter, TheControllerIsEnabledInAllAncestors) {
  const test::TempDir root;
  fs::create_directories(root.path() / "kubepods/podx");
  root.write("cgroup.subtree_control", "");
  root.write("kubepods/cgroup.subtree_control", "");
  const auto written = CpusetWriter(root.path()).write(see(root, "/kubepods/podx"), cpus("2-3"));
  EXPECT_FALSE(written) << "no kernel made the file";
  EXPECT_EQ(text_of(root.path() / "cgroup.subtree_control"), "+cpuset");
  EXPECT_EQ(text_of(root.path() / "kubepods/cgroup.subtree_control"), "+cpuset");
}

TEST(CpusetWriter, ACgroupThatWasMadeAgainIsNotWritten) {
  const test::TempDir root;
  for (const char* path : {"kubepods/podx", "a.slice"}) {
    fs::create_directories(root.path() / path);
    for (const char* file : {"cpuset.cpus", "cpuset.mems"})
      root.write(std::string(path) + "/" + file, "\n");
  }
  const test::NoBus no_bus;
  CpusetWriter writer(root.path());
  for (const std::string path : {"/kubepods/podx", "/a.slice"}) {
    const SeenCgroup seen = see(root, path);
    test::make_again(root.path().native() + path);
    for (const auto& written :
         {writer.write(seen, cpus("2-3")), writer.write_nodes(seen, NodeSet::of(1))}) {
      ASSERT_FALSE(written) << path;
      EXPECT_EQ(written.error().what, path + " was removed");
      EXPECT_EQ(written.error().code, ENOENT);
    }
    EXPECT_EQ(text_of(root.path().native() + path + "/cpuset.cpus"), "");
    EXPECT_EQ(text_of(root.path().native() + path + "/cpuset.mems"), "");
  }
}

TEST(CpuPartition, OfACgroupThatWasMadeAgainIsNotChanged) {
  const test::TempDir root;
  fs::create_directories(root.path() / "pod");
  root.write("pod/cpuset.cpus.partition", "member\n");
  root.write("pod/cpuset.cpus.exclusive", "4\n");
  const CpuPartition partition(root.path());
  const SeenCgroup seen = see(root, "/pod");
  test::make_again(root.path() / "pod");
  EXPECT_FALSE(partition.isolate(seen, cpus("2-3")));
  EXPECT_TRUE(partition.delegate_exclusive(seen, cpus("2-3")));
  EXPECT_TRUE(partition.make_member(seen)) << "nothing is to be done";
  EXPECT_EQ(partition.state("/pod"), "member");
  EXPECT_EQ(partition.exclusive("/pod"), cpus("4"));
  const SeenCgroup again = see(root, "/pod");
  EXPECT_TRUE(partition.isolate(again, cpus("2-3")));
  EXPECT_EQ(partition.state("/pod"), "isolated");
  EXPECT_EQ(partition.exclusive("/pod"), cpus("2-3"));
}

TEST(CpusetWriter, TheDropInOfARemovedUnitIsDeleted) {
  const test::TempDir control;
  fs::create_directories(control.path() / "a.slice.d");
  fs::create_directories(control.path() / "b.slice.d");
  control.write("a.slice.d/50-AllowedCPUs.conf", "");
  control.write("a.slice.d/50-AllowedMemoryNodes.conf", "");
  control.write("b.slice.d/50-AllowedCPUs.conf", "");
  control.write("b.slice.d/50-MemoryMax.conf", "");
  const test::NoBus no_bus;
  CpusetWriter writer("/nowhere", control.path());
  EXPECT_TRUE(writer.remove_settings("/a.slice"));
  EXPECT_TRUE(writer.remove_settings("/b.slice"));
  EXPECT_TRUE(writer.remove_settings("/kubepods/podx"));
  EXPECT_FALSE(fs::exists(control.path() / "a.slice.d"));
  EXPECT_FALSE(fs::exists(control.path() / "b.slice.d/50-AllowedCPUs.conf"));
  EXPECT_TRUE(fs::exists(control.path() / "b.slice.d/50-MemoryMax.conf")) << "another's";
}

}  // namespace
}  // namespace headroom::act
