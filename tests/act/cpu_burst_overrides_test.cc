// SPDX-License-Identifier: Apache-2.0
// cpu.max.burst of cgroups: what is written, saved and restored. On plain files.
#include "act/limits/cpu_burst_overrides.h"

#include "act/original_values.h"
#include "config/temp_dir.h"
#include "support/fake_cgroupfs.h"

#include <cerrno>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace headroom::act {
namespace {

class CpuBurstOverridesTest : public ::testing::Test {
 protected:
  CpuBurstOverridesTest()
      : tree({.name = "root",
              .files = {},
              .children = {{.name = "pod", .files = {{"cpu.max.burst", "0"}}, .children = {}},
                           {.name = "own", .files = {{"cpu.max.burst", "5000"}}, .children = {}},
                           {.name = "old", .files = {}, .children = {}}}}) {}

  CpuBurstOverrides overrides() {
    return {tree.root(), [this](const CpuBurstOverrides::Found& found) -> Result<> {
              if (refuse_to_save) return failure("full");
              return file.save(found);
            }};
  }
  CgroupId id(const char* name) const { return CgroupId{tree.id(name)}; }
  std::string burst(const char* name) const {
    std::string line;
    std::getline(std::ifstream(tree.root() / name / "cpu.max.burst"), line);
    return line;
  }

  test::FakeCgroupfs tree;
  test::TempDir state;
  CpuBurstFile file = cpu_burst_file(state.path());
  bool refuse_to_save = false;
};

TEST_F(CpuBurstOverridesTest, IsGrantedAndWithdrawn) {
  CpuBurstOverrides bursts = overrides();
  EXPECT_EQ(bursts.grant(id("pod"), "/pod", 20'000), 0);
  EXPECT_EQ(burst("pod"), "20000");
  EXPECT_TRUE(file.exists());
  EXPECT_EQ(bursts.withdraw(id("pod")), 0);
  EXPECT_EQ(burst("pod"), "0");
  EXPECT_FALSE(file.exists());
}

TEST_F(CpuBurstOverridesTest, ItsOwnBurstIsRestored) {
  CpuBurstOverrides bursts = overrides();
  EXPECT_EQ(bursts.grant(id("own"), "/own", 4000), EBUSY) << "it has more";
  EXPECT_EQ(bursts.grant(id("own"), "/own", 20'000), 0);
  bursts.withdraw_all();
  EXPECT_EQ(burst("own"), "5000");
}

TEST_F(CpuBurstOverridesTest, AnotherProgramsValueIsKept) {
  CpuBurstOverrides bursts = overrides();
  EXPECT_EQ(bursts.grant(id("pod"), "/pod", 20'000), 0);
  tree.write("pod", "cpu.max.burst", "7000");
  EXPECT_EQ(bursts.withdraw(id("pod")), 0);
  EXPECT_EQ(burst("pod"), "7000");
  EXPECT_TRUE(bursts.found().empty());
}

TEST_F(CpuBurstOverridesTest, NothingIsWrittenUnlessItIsSaved) {
  CpuBurstOverrides bursts = overrides();
  refuse_to_save = true;
  EXPECT_EQ(bursts.grant(id("pod"), "/pod", 20'000), EIO);
  EXPECT_EQ(burst("pod"), "0");
  EXPECT_TRUE(bursts.found().empty());
}

TEST_F(CpuBurstOverridesTest, TheNextDaemonRestoresAfterACrash) {
  {
    CpuBurstOverrides bursts = overrides();
    EXPECT_EQ(bursts.grant(id("pod"), "/pod", 20'000), 0);
  }  // it ends without withdrawing
  EXPECT_EQ(burst("pod"), "20000");
  CpuBurstOverrides bursts = overrides();
  auto former = file.load();
  ASSERT_TRUE(former) << former.error().what;
  bursts.restore_former(std::move(*former));
  EXPECT_EQ(burst("pod"), "0");
  EXPECT_FALSE(file.exists());
}

TEST_F(CpuBurstOverridesTest, AKernelWithoutBurstsAndARemovedCgroup) {
  CpuBurstOverrides bursts = overrides();
  EXPECT_EQ(bursts.grant(id("old"), "/old", 20'000), ENOENT);
  EXPECT_EQ(bursts.grant(id("pod"), "/own", 20'000), ENOENT) << "another cgroup has its path";
  EXPECT_EQ(burst("own"), "5000");
}

}  // namespace
}  // namespace headroom::act
