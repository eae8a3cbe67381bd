// SPDX-License-Identifier: Apache-2.0
// cgroup names spelt for both drivers, and read back.
#include "judge/allocatable/cgroup/cgroup_name.h"
#include "judge/vectors/lines.h"

#include <string>
#include <vector>

namespace headroom::vectors {
namespace {

class SystemdNameVectors : public VectorTest {};

// Upstream reads the root back as one component "/"; ours is a name without any.
std::vector<std::string> as_upstream(const CgroupName& name) {
  return name.is_root() ? std::vector<std::string>{"/"} : name.components();
}

TEST_P(SystemdNameVectors, Agree) {
  const auto name = CgroupName::of(line().at("components").get<std::vector<std::string>>());
  if (line().contains("panic")) {
    EXPECT_FALSE(name);
    return;
  }
  ASSERT_TRUE(name) << name.error().what();
  EXPECT_EQ(name->path(CgroupDriver::kSystemd), text("systemd"));
  EXPECT_EQ(name->path(CgroupDriver::kCgroupfs), text("cgroupfs"));

  const auto expected = line().at("parsed_back").get<std::vector<std::string>>();
  for (const auto& back : {CgroupName::parse(CgroupDriver::kSystemd, text("systemd")),
                           CgroupName::parse(CgroupDriver::kCgroupfs, text("cgroupfs")),
                           CgroupName::parse_unit(name->unit())}) {
    ASSERT_TRUE(back) << back.error().what();
    EXPECT_EQ(as_upstream(*back), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Lines, SystemdNameVectors,
                         testing::ValuesIn(lines_of("systemd_name.jsonl")), case_name);

}  // namespace
}  // namespace headroom::vectors
