// SPDX-License-Identifier: Apache-2.0
// cpu.max.burst, cpu.idle and cpu.weight of cgroups: what is written, saved and restored. On plain
// files, so cpu.weight does not follow cpu.idle as in the kernel: tests write what it would be.
#include "act/limits/cgroup_overrides.h"

#include "act/original_values.h"
#include "config/temp_dir.h"
#include "support/fake_cgroupfs.h"

#include <cerrno>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::act {
namespace {

class CgroupOverridesTest : public ::testing::Test {
 protected:
  CgroupOverridesTest()
      : tree({.name = "root",
              .files = {},
              .children = {
                  {.name = "pod", .files = {{"cpu.max.burst", "0"}}, .children = {}},
                  {.name = "own", .files = {{"cpu.max.burst", "5000"}}, .children = {}},
                  {.name = "old", .files = {}, .children = {}},
                  {.name = "batch",
                   .files = {{"cpu.idle", "0"}, {"cpu.weight", "39"}},
                   .children = {}},
                  {.name = "idle",
                   .files = {{"cpu.idle", "1"}, {"cpu.weight", "0"}},
                   .children = {}},
                  {.name = "before515", .files = {{"cpu.weight", "39"}}, .children = {}},
                  {.name = "least", .files = {{"cpu.weight", "1"}}, .children = {}},
                  {.name = "hog", .files = {{"memory.swap.high", "max"}}, .children = {}},
                  {.name = "low", .files = {{"memory.swap.high", "65536"}}, .children = {}},
                  {.name = "bank", .files = {{"memory.zswap.writeback", "1"}}, .children = {}},
                  {.name = "app", .files = {{"memory.zswap.writeback", "0"}}, .children = {}}}}) {}

  CgroupOverrides overrides() {
    return {tree.root(), [this](const CgroupOverrides::Found& found) -> Result<> {
              if (refuse_to_save) return failure("full");
              return file.save(found);
            }};
  }
  CgroupId id(const char* name) const { return CgroupId{tree.id(name)}; }
  std::string value(const char* name, const char* setting) const {
    std::string line;
    std::getline(std::ifstream(tree.root() / name / setting), line);
    return line;
  }
  std::string burst(const char* name) const { return value(name, "cpu.max.burst"); }
  using Wanted = CgroupOverrides::Wanted;
  Wanted high(const char* name, std::uint64_t bytes) const {
    return {.cgroup = id(name), .path = std::string("/") + name, .value = bytes};
  }
  Wanted in_zswap(const char* name, bool inherited = false) const {
    return {.cgroup = id(name),
            .path = std::string("/") + name,
            .file = OverriddenFile::kZswapWriteback,
            .value = 0,
            .inherited = inherited};
  }
  // What the kernel does to cpu.weight when cpu.idle is written.
  void follow_idle(const char* weight) { tree.write("batch", "cpu.weight", weight); }

  test::FakeCgroupfs tree;
  test::TempDir state;
  CgroupOverridesFile file = cpu_burst_file(state.path());
  bool refuse_to_save = false;
};

TEST_F(CgroupOverridesTest, IsGrantedAndWithdrawn) {
  CgroupOverrides bursts = overrides();
  EXPECT_EQ(bursts.set_burst(id("pod"), "/pod", 20'000), 0);
  EXPECT_EQ(burst("pod"), "20000");
  EXPECT_TRUE(file.exists());
  EXPECT_EQ(bursts.restore(id("pod")), 0);
  EXPECT_EQ(burst("pod"), "0");
  EXPECT_FALSE(file.exists());
}

TEST_F(CgroupOverridesTest, ItsOwnBurstIsRestored) {
  CgroupOverrides bursts = overrides();
  EXPECT_EQ(bursts.set_burst(id("own"), "/own", 4000), EBUSY) << "it has more";
  EXPECT_EQ(bursts.set_burst(id("own"), "/own", 20'000), 0);
  bursts.restore_all();
  EXPECT_EQ(burst("own"), "5000");
}

TEST_F(CgroupOverridesTest, AnotherProgramsValueIsKept) {
  CgroupOverrides bursts = overrides();
  EXPECT_EQ(bursts.set_burst(id("pod"), "/pod", 20'000), 0);
  tree.write("pod", "cpu.max.burst", "7000");
  EXPECT_EQ(bursts.restore(id("pod")), 0);
  EXPECT_EQ(burst("pod"), "7000");
  EXPECT_TRUE(bursts.found().empty());
}

TEST_F(CgroupOverridesTest, NothingIsWrittenUnlessItIsSaved) {
  CgroupOverrides bursts = overrides();
  refuse_to_save = true;
  EXPECT_EQ(bursts.set_burst(id("pod"), "/pod", 20'000), EIO);
  EXPECT_EQ(burst("pod"), "0");
  EXPECT_TRUE(bursts.found().empty());
}

TEST_F(CgroupOverridesTest, TheNextDaemonRestoresAfterACrash) {
  {
    CgroupOverrides bursts = overrides();
    EXPECT_EQ(bursts.set_burst(id("pod"), "/pod", 20'000), 0);
  }  // it ends without withdrawing
  EXPECT_EQ(burst("pod"), "20000");
  CgroupOverrides bursts = overrides();
  auto former = file.load();
  ASSERT_TRUE(former) << former.error().what;
  bursts.restore_former(std::move(*former));
  EXPECT_EQ(burst("pod"), "0");
  EXPECT_FALSE(file.exists());
}

TEST_F(CgroupOverridesTest, AKernelWithoutBurstsAndARemovedCgroup) {
  CgroupOverrides bursts = overrides();
  EXPECT_EQ(bursts.set_burst(id("old"), "/old", 20'000), ENOENT);
  EXPECT_EQ(bursts.set_burst(id("pod"), "/own", 20'000), ENOENT) << "another cgroup has its path";
  EXPECT_EQ(burst("own"), "5000");
}

TEST_F(CgroupOverridesTest, IdleIsClearedAndTheWeightIsRestored) {
  CgroupOverrides overridden = overrides();
  EXPECT_EQ(overridden.suppress(id("batch"), "/batch"), 0);
  EXPECT_EQ(value("batch", "cpu.idle"), "1");
  EXPECT_EQ(value("batch", "cpu.weight"), "39") << "the kernel refuses a write to it";
  follow_idle("100");
  EXPECT_EQ(overridden.restore(id("batch")), 0);
  EXPECT_EQ(value("batch", "cpu.idle"), "0");
  EXPECT_EQ(value("batch", "cpu.weight"), "39");
  EXPECT_FALSE(file.exists());
}

TEST_F(CgroupOverridesTest, AnOperatorsIdleIsLeftAlone) {
  CgroupOverrides overridden = overrides();
  EXPECT_EQ(overridden.suppress(id("idle"), "/idle"), EBUSY);
  overridden.restore_all();
  EXPECT_EQ(value("idle", "cpu.idle"), "1");
}

TEST_F(CgroupOverridesTest, WithoutIdleTheWeightIsTheLeast) {
  CgroupOverrides overridden = overrides();
  EXPECT_EQ(overridden.suppress(id("before515"), "/before515"), 0);
  EXPECT_EQ(value("before515", "cpu.weight"), "1");
  EXPECT_EQ(overridden.suppress(id("least"), "/least"), EBUSY);
  overridden.restore_all();
  EXPECT_EQ(value("before515", "cpu.weight"), "39");
  EXPECT_EQ(value("least", "cpu.weight"), "1");
}

// systemd clears cpu.idle when a unit's CPUWeight= is set, and writes its weight.
TEST_F(CgroupOverridesTest, AWeightThatAnotherProgramSetAfterClearingIdleIsKept) {
  for (const char* const weight : {"50", "100"}) {
    tree.write("batch", "cpu.idle", "0");
    follow_idle("39");
    CgroupOverrides overridden = overrides();
    ASSERT_EQ(overridden.suppress(id("batch"), "/batch"), 0);
    tree.write("batch", "cpu.idle", "0");
    follow_idle(weight);
    EXPECT_EQ(overridden.restore(id("batch")), 0);
    EXPECT_EQ(value("batch", "cpu.weight"), weight);
    EXPECT_TRUE(overridden.found().empty());
  }
}

// The daemon died between the two writes of restore().
TEST_F(CgroupOverridesTest, TheNextDaemonRestoresAWeightThatTheKernelReset) {
  CgroupOverrides overridden = overrides();
  tree.write("batch", "cpu.idle", "0");
  follow_idle("100");
  overridden.restore_former({{id("batch"),
                              {.path = "/batch",
                               .found = 0,
                               .set = 1,
                               .setting = OverriddenFile::kIdle,
                               .weight = 39,
                               .clearing = true}}});
  EXPECT_EQ(value("batch", "cpu.weight"), "39");
}

TEST_F(CgroupOverridesTest, SwapIsLimitedAndTheOldLimitIsRestored) {
  CgroupOverrides swap = overrides();
  EXPECT_EQ(swap.set_all({high("hog", 1 << 20), high("low", 1 << 20), in_zswap("bank")}),
            (std::vector<int>{0, EBUSY, 0}))
      << "one has a lower limit of its own";
  EXPECT_EQ(value("hog", "memory.swap.high"), "1048576");
  EXPECT_EQ(value("low", "memory.swap.high"), "65536");
  EXPECT_EQ(value("bank", "memory.zswap.writeback"), "0");
  EXPECT_EQ(swap.found().at(id("hog")).found, kNoLimit);
  EXPECT_EQ(swap.set_all({high("hog", 1 << 19)}), std::vector<int>{EBUSY}) << "restore it first";
  swap.restore_all();
  EXPECT_EQ(value("hog", "memory.swap.high"), "max");
  EXPECT_EQ(value("bank", "memory.zswap.writeback"), "1");
  EXPECT_FALSE(file.exists());
}

TEST_F(CgroupOverridesTest, ManyAreSavedAtOnce) {
  int saves = 0;
  CgroupOverrides swap(tree.root(), [&](const CgroupOverrides::Found& found) -> Result<> {
    ++saves;
    return file.save(found);
  });
  (void)swap.set_all({high("hog", 1 << 20), in_zswap("bank"), high("low", 4096)});
  EXPECT_EQ(saves, 1);
  EXPECT_EQ(swap.restore_others({id("bank"), id("low")}), std::vector<CgroupId>{});
  EXPECT_EQ(saves, 2);
  EXPECT_EQ(value("hog", "memory.swap.high"), "max");
  EXPECT_EQ(value("low", "memory.swap.high"), "4096");
  EXPECT_EQ(swap.restore_others({id("bank"), id("low")}), std::vector<CgroupId>{});
  EXPECT_EQ(saves, 2) << "nothing changed";
}

TEST_F(CgroupOverridesTest, OfManyNoneIsWrittenUnlessAllAreSaved) {
  CgroupOverrides swap = overrides();
  refuse_to_save = true;
  EXPECT_EQ(swap.set_all({high("hog", 1 << 20), high("old", 1), in_zswap("bank")}),
            (std::vector<int>{EIO, ENOENT, EIO}));
  EXPECT_EQ(value("hog", "memory.swap.high"), "max");
  EXPECT_EQ(value("bank", "memory.zswap.writeback"), "1");
  EXPECT_TRUE(swap.found().empty());
}

// Up to Linux 6.10 a cgroup that is created takes its parent's memory.zswap.writeback.
TEST_F(CgroupOverridesTest, AnInheritedValueIsRestoredToTheKernelsDefault) {
  CgroupOverrides swap = overrides();
  EXPECT_EQ(swap.set_all({in_zswap("app")}), std::vector<int>{EBUSY}) << "its own";
  EXPECT_EQ(swap.set_all({in_zswap("bank")}), std::vector<int>{0});
  EXPECT_EQ(swap.set_all({in_zswap("app", true)}), std::vector<int>{0});
  EXPECT_EQ(swap.found().at(id("app")).found, 1u);
  swap.restore_all();
  EXPECT_EQ(value("app", "memory.zswap.writeback"), "1");
}

TEST_F(CgroupOverridesTest, AValueThatAnotherProgramChangedIsForgotten) {
  CgroupOverrides swap = overrides();
  ASSERT_EQ(swap.set_all({high("hog", 1 << 20), in_zswap("bank")}), (std::vector<int>{0, 0}));
  tree.write("bank", "memory.zswap.writeback", "1");
  tree.write("hog", "memory.swap.high", "2097152");
  swap.forget_changed();
  EXPECT_TRUE(swap.found().empty());
  EXPECT_EQ(swap.set_all({high("hog", 1 << 20)}), std::vector<int>{0});
  swap.restore_all();
  EXPECT_EQ(value("hog", "memory.swap.high"), "2097152") << "the other program's value";
}

TEST_F(CgroupOverridesTest, TheLargestValueSurvivesTheFile) {
  {
    CgroupOverrides swap = overrides();
    ASSERT_EQ(swap.set_all({high("hog", 1 << 20)}), std::vector<int>{0});
  }
  CgroupOverrides swap = overrides();
  auto former = file.load();
  ASSERT_TRUE(former) << former.error().what;
  swap.restore_former(std::move(*former));
  EXPECT_EQ(value("hog", "memory.swap.high"), "max");
}

TEST_F(CgroupOverridesTest, AFileWithoutTheSettingIsOfBursts) {
  CgroupOverrides::Found found;
  ASSERT_TRUE(state::from_json(
      nlohmann::json::parse(R"([[7, {"path": "/pod", "found": 0, "set": 20000}]])"), found));
  EXPECT_EQ(found.at(CgroupId{7}).setting, OverriddenFile::kBurst);
}

}  // namespace
}  // namespace headroom::act
