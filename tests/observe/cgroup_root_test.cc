// SPDX-License-Identifier: Apache-2.0
// Where cgroup v2 is, and the refusals, from mountinfo texts of real hosts.
#include "observe/cgroup/cgroup_source.h"
#include "support/fake_cgroupfs.h"

#include <fstream>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

using test::FakeCgroupfs;

// A mountinfo whose "@" stands for the fake root.
CgroupRoot find(std::string mountinfo, const FakeCgroupfs& tree) {
  for (std::size_t at; (at = mountinfo.find('@')) != std::string::npos;)
    mountinfo.replace(at, 1, tree.root().string());
  const auto file = tree.root() / "mountinfo";
  std::ofstream(file) << mountinfo;
  return find_cgroup_root(file);
}

FakeCgroupfs tree_with(const std::string& controllers) {
  return FakeCgroupfs(
      {.name = "",
       .files = {{"cgroup.controllers", controllers}},
       .children = {
           {.name = "unified", .files = {{"cgroup.controllers", controllers}}, .children = {}}}});
}

constexpr const char* kUnified =
    "35 24 0:30 / @ rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr const char* kHybrid =
    "33 24 0:29 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n"
    "34 33 0:30 / @/unified rw shared:9 - cgroup2 cgroup2 rw\n"
    "36 33 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

TEST(CgroupRoot, Unified) {
  FakeCgroupfs tree = tree_with("cpuset cpu io memory hugetlb pids\n");
  const CgroupRoot root = find(kUnified, tree);
  EXPECT_EQ(root.mount, tree.root());
  EXPECT_TRUE(root.unified);
  EXPECT_TRUE(root.has("memory"));
  EXPECT_FALSE(root.has("mem"));
  EXPECT_EQ(root.unsupported_reason, "");
}

TEST(CgroupRoot, NamedSystemdHierarchyHoldsNoController) {
  FakeCgroupfs tree = tree_with("cpu memory pids\n");
  const CgroupRoot root =
      find(std::string(kUnified) + "40 24 0:33 / /x rw - cgroup cgroup rw,name=systemd\n", tree);
  EXPECT_TRUE(root.unified);
  EXPECT_EQ(root.unsupported_reason, "");
}

TEST(CgroupRoot, HybridIsRefused) {
  FakeCgroupfs tree = tree_with("hugetlb\n");
  const CgroupRoot root = find(kHybrid, tree);
  EXPECT_EQ(root.mount, tree.root() / "unified");
  EXPECT_FALSE(root.unified);
  EXPECT_EQ(root.unsupported_reason,
            "cgroup v1 or hybrid host: " + root.mount.string() + " lacks memory, cpu, pids");
}

TEST(CgroupRoot, PureV1) {
  FakeCgroupfs tree = tree_with("");
  const CgroupRoot root = find("36 33 0:31 / /m rw - cgroup cgroup rw,memory\n", tree);
  EXPECT_TRUE(root.mount.empty());
  EXPECT_TRUE(root.unsupported_reason.starts_with("cgroup v1 host: no cgroup2 is mounted"))
      << root.unsupported_reason;
}

TEST(CgroupRoot, UnifiedWithoutTheMemoryController) {
  FakeCgroupfs tree = tree_with("cpu pids\n");
  const CgroupRoot root = find(kUnified, tree);
  EXPECT_TRUE(root.unsupported_reason.find("lacks memory (cgroup_disable=") != std::string::npos)
      << root.unsupported_reason;
}

TEST(CgroupRoot, EscapedMountPointsAndGarbage) {
  FakeCgroupfs tree = tree_with("cpu memory pids\n");
  const CgroupRoot root =
      find("garbage\n\n1 2 3 - x\n50 24 0:30 / /with\\040blank rw - cgroup2 none rw\n", tree);
  EXPECT_EQ(root.mount, "/with blank");
}

TEST(CgroupRoot, NoMountinfoAtAll) {
  EXPECT_FALSE(find_cgroup_root("/nonexistent").unsupported_reason.empty());
}

}  // namespace
}  // namespace headroom::observe
