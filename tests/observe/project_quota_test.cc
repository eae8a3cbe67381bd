// SPDX-License-Identifier: Apache-2.0
// Whether a path's filesystem counts by project, from mountinfo texts.
#include "config/temp_dir.h"
#include "observe/node/directory_size.h"

#include <fstream>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

constexpr const char* kMounts =
    "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
    "23 22 8:2 / /var/lib/kubelet rw shared:1 - xfs /dev/sdb rw,attr2,prjquota\n"
    "24 22 8:3 / /data\\040two rw - ext4 /dev/sdc rw,prjquota\n"
    "25 22 8:4 / /twice rw - ext4 /dev/sdd rw,prjquota\n"
    "26 25 8:5 / /twice rw - ext4 /dev/sde rw,noprjquota\n";

struct Case {
  const char* path;
  bool counts;
};
const Case kCases[] = {
    {"/", false},
    {"/var/lib", false},
    {"/var/lib/kubelet", true},
    {"/var/lib/kubelet/pods/x", true},
    {"/var/lib/kubelet2", false},
    {"/data two/x", true},
    {"/twice", false},  // what is mounted last is seen
};

TEST(MountOf, TellsWhetherProjectsAreCounted) {
  const test::TempDir dir;
  const auto mountinfo = dir.path() / "mountinfo";
  std::ofstream(mountinfo) << kMounts;
  for (const Case& c : kCases) {
    const auto counts = has_project_quota(c.path, mountinfo);
    ASSERT_TRUE(counts) << c.path;
    EXPECT_EQ(*counts, c.counts) << c.path;
  }
  EXPECT_FALSE(has_project_quota("/", dir.path() / "none"));
}

}  // namespace
}  // namespace headroom::observe
