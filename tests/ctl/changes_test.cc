// SPDX-License-Identifier: Apache-2.0
// headroomctl changes: the ledger, from the files that the daemon writes.
#include "act/cpus/cpu_checkpoint.h"
#include "act/cpus/cpuset_units.h"
#include "act/memory/memory_checkpoint.h"
#include "act/original_values.h"
#include "base/state/saved_taints.h"
#include "config/temp_dir.h"
#include "ctl/changes_command.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::ctl {
namespace {

using test::TempDir;
using Changes = std::vector<Change>;

struct LedgerTest : ::testing::Test {
  const TempDir dir;
  const LedgerFiles files{.state_dir = dir.path(),
                          .cpu_state_file = dir.path() / "cpus",
                          .memory_state_file = dir.path() / "memory",
                          .unit_settings = dir.path() / "settings"};
};

TEST_F(LedgerTest, WithoutFilesNothingIsChanged) {
  const auto changes = read_ledger(files);
  ASSERT_TRUE(changes);
  EXPECT_EQ(*changes, Changes{});
  EXPECT_EQ(render_changes({}, {}), "headroomd has changed nothing that it would restore\n");
}

TEST_F(LedgerTest, HasEveryStore) {
  ASSERT_TRUE(act::memory_high_file(dir.path())
                  .save({{CgroupId{1}, {"/pod1", std::nullopt, Bytes{1 << 20}}},
                         {CgroupId{2}, {"/pod2", Bytes{3 << 20}, Bytes{2 << 20}}}}));
  ASSERT_TRUE(act::memory_max_file(dir.path())
                  .save({{CgroupId{11},
                          {.path = "/pod11",
                           .found = Bytes{4 << 20},
                           .set = Bytes{5 << 20},
                           .ceiling = Bytes{6 << 20},
                           .brake = Bytes{3 << 20}}},
                         {CgroupId{12},
                          {.path = "/pod12",
                           .found = Bytes{4 << 20},
                           .set = Bytes{4 << 20},
                           .ceiling = Bytes{6 << 20}}}}));
  ASSERT_TRUE(act::cpu_burst_file(dir.path())
                  .save({{CgroupId{7}, {.path = "/pod7", .found = 0, .set = 20'000}}}));
  ASSERT_TRUE(act::cpu_suppress_file(dir.path())
                  .save({{CgroupId{8},
                          {.path = "/pod8",
                           .found = 0,
                           .set = 1,
                           .setting = act::OverriddenFile::kIdle,
                           .weight = 39}}}));
  ASSERT_TRUE(act::pod_swap_file(dir.path())
                  .save({{CgroupId{9},
                          {.path = "/pod9",
                           .found = act::kNoLimit,
                           .set = 65536,
                           .setting = act::OverriddenFile::kSwapHigh}},
                         {CgroupId{10},
                          {.path = "/pod10",
                           .found = 1,
                           .set = 0,
                           .setting = act::OverriddenFile::kZswapWriteback}}}));
  ASSERT_TRUE(act::suspended_limits_file(dir.path())
                  .save({{CgroupId{3},
                          {"/sys/fs/cgroup/pod3", {{"cpu.max", "5 100"}, {"cpu.weight", "20"}}}}}));
  ASSERT_TRUE(act::oom_score_file(dir.path())
                  .save({{CgroupId{4},
                          {.path = "/pod4",
                           .applied = 900,
                           .values = {{CgroupId{5}, 3}, {CgroupId{6}, 0}}}}}));
  CpuState cpus;
  cpus.default_set = *CpuSet::parse("0-1");
  cpus.entries["uid"]["app"] = *CpuSet::parse("2-3");
  ASSERT_TRUE(act::CpuStateFile(files.cpu_state_file).save("static", cpus));
  MemoryState memory;
  memory.entries["uid"]["app"] = {{NodeSet::of(0) | NodeSet::of(1), "memory", Bytes{4096}}};
  ASSERT_TRUE(act::MemoryStateFile(files.memory_state_file).save("Static", memory));
  ASSERT_TRUE(act::cpuset_units_file(dir.path()).save({"/a.slice/web.service", "/a.slice/gone"}));
  std::filesystem::create_directories(files.unit_settings / "web.service.d");
  std::ofstream(files.unit_settings / "web.service.d/50-AllowedCPUs.conf")
      << "[Service]\nAllowedCPUs=1-3\n";
  const Taint kept{"kept", "", TaintEffect::kNoSchedule};
  const state::StateFile<state::SavedTaints> taints(dir.path() / state::kTaintsFile);
  ASSERT_TRUE(taints.save({.configured = {kept, {"gone", "x", TaintEffect::kNoSchedule}},
                           .active = {kept, {"new", "", TaintEffect::kNoExecute}}}));
  const auto changes = read_ledger(files);
  ASSERT_TRUE(changes) << changes.error().what;
  EXPECT_EQ(*changes, (Changes{{"memory.high", "/pod1", "1048576", "max"},
                               {"memory.high", "/pod2", "2097152", "3145728"},
                               {"memory.max", "/pod11", "5242880", "4194304"},
                               {"memory.high", "/pod11", "3145728", "max"},
                               {"memory.max", "/pod12", "being changed", "4194304"},
                               {"cpu.max.burst", "/pod7", "20000", "0"},
                               {"cpu.idle", "/pod8", "1", "0"},
                               {"cpu.weight", "/pod8", "0", "39"},
                               {"memory.swap.high", "/pod9", "65536", "max"},
                               {"memory.zswap.writeback", "/pod10", "0", "1"},
                               {"cpu.max", "/sys/fs/cgroup/pod3", "lifted for a kill", "5 100"},
                               {"cpu.weight", "/sys/fs/cgroup/pod3", "lifted for a kill", "20"},
                               {"oom_score_adj", "/pod4", "900", "0, 3"},
                               {"cpuset.cpus", "uid/app", "2-3", "shared: 0-1"},
                               {"cpuset.mems", "uid/app", "0-1", "any"},
                               {"AllowedCPUs", "/a.slice/web.service", "1-3", "-"},
                               {"taint", "the node", "new:NoExecute", "-"},
                               {"taint", "the node", "-", "gone=x:NoSchedule"}}));
}

TEST_F(LedgerTest, ADamagedFileIsAnErrorAndStays) {
  std::ofstream(dir.path() / "memory-high.json") << "{";
  EXPECT_FALSE(read_ledger(files));
  EXPECT_TRUE(std::filesystem::exists(dir.path() / "memory-high.json"));
}

TEST(SliceChanges, AreThoseOfModeEnforce) {
  const std::string slices = R"("slices": [{"slice": "/kubepods.slice", "settings": [
      {"setting": "cpu.weight", "desired": "59"}, {"setting": "pids.max", "desired": null}]}]})";
  EXPECT_EQ(slice_changes(R"({"slices": {"mode": "enforce", )" + slices + "}"),
            (Changes{{"cpu.weight", "/kubepods.slice", "59", "of the unit"}}));
  EXPECT_EQ(slice_changes(R"({"slices": {"mode": "observe", )" + slices + "}"), Changes{});
  EXPECT_EQ(slice_changes("{}"), Changes{});
  EXPECT_EQ(slice_changes("no JSON"), Changes{});
  // Of another version, or damaged.
  for (const char* document :
       {R"({"slices": 5})", R"({"slices": {"mode": 5, "slices": 5}})",
        R"({"slices": {"mode": "enforce", "slices": [5, "x", {"settings": {"desired": 5}}]}})"})
    EXPECT_EQ(slice_changes(document), Changes{}) << document;
}

TEST(RenderChanges, AsATableAndAsJson) {
  const Changes changes{{"memory.high", "/pod\x1b", "1", "max"}};
  EXPECT_EQ(render_changes(changes, {}),
            "SETTING      OBJECT  CURRENT  ORIGINAL\n"
            "memory.high  /pod?   1        max\n");
  const auto json = nlohmann::json::parse(changes_json(changes));
  EXPECT_EQ(json["changes"][0]["original"], "max");
}

}  // namespace
}  // namespace headroom::ctl
