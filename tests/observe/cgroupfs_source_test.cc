// SPDX-License-Identifier: Apache-2.0
// The file reader on fake trees: every field, hostile trees, and a tree that changes.
#include "observe/cgroup/cgroupfs_source.h"

#include "daemon/turn/allocation_count.h"
#include "observe/self_check.h"
#include "support/fake_cgroupfs.h"

#include <optional>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

using test::FakeCgroup;
using test::FakeCgroupfs;
using test::full_cgroup;

std::unique_ptr<CgroupfsSource> open(const FakeCgroupfs& tree, std::uint32_t groups = kAllGroups,
                                     std::size_t descriptors = 0) {
  auto source =
      CgroupfsSource::open({.root = tree.root(), .groups = groups, .descriptors = descriptors});
  EXPECT_TRUE(source) << source.error().what;
  return std::move(*source);
}

// The record of one cgroup in a fresh sweep.
std::optional<hr_record> look(CgroupfsSource& source, std::uint64_t id) {
  auto swept = source.sweep();
  EXPECT_TRUE(swept);
  for (const hr_record& record : *swept)
    if (record.id == id) return record;
  return std::nullopt;
}

TEST(CgroupfsSource, ReadsEveryField) {
  FakeCgroupfs tree({.name = "", .files = {}, .children = {full_cgroup("a")}});
  auto source = open(tree);
  const auto record = look(*source, tree.id("a"));
  ASSERT_TRUE(record);
  EXPECT_EQ(record->parent_id, tree.id(""));
  EXPECT_EQ(record->valid, kAllGroups);
  EXPECT_EQ(record->populated, 1u);
  EXPECT_EQ(record->memory_usage, 1048576u);
  EXPECT_EQ(record->swap_usage, 8192u);
  EXPECT_EQ(record->anon, 1u);
  EXPECT_EQ(record->file, 2u);
  EXPECT_EQ(record->shmem, 3u);
  EXPECT_EQ(record->inactive_anon, 4u);
  EXPECT_EQ(record->active_anon, 5u);
  EXPECT_EQ(record->inactive_file, 6u);
  EXPECT_EQ(record->active_file, 7u);
  EXPECT_EQ(record->unevictable, 8u);
  EXPECT_EQ(record->memory_peak, 3145728u);
  EXPECT_EQ(record->kernel_stack, 21u);
  EXPECT_EQ(record->pagetables, 22u);
  EXPECT_EQ(record->slab_reclaimable, 23u);
  EXPECT_EQ(record->slab_unreclaimable, 24u);
  EXPECT_EQ(record->zswap, 25u);
  EXPECT_EQ(record->zswapped, 26u);
  EXPECT_EQ(record->anon_thp, 27u);
  EXPECT_EQ(record->file_thp, 28u);
  EXPECT_EQ(record->shmem_thp, 29u);
  EXPECT_EQ(record->file_mapped, 88u);
  EXPECT_EQ(record->swapcached, 89u);
  EXPECT_EQ(record->refault_anon, 31u);
  EXPECT_EQ(record->refault_file, 32u);
  EXPECT_EQ(record->pgscan, 33u);
  EXPECT_EQ(record->pgsteal, 34u);
  EXPECT_EQ(record->pgfault, 36u);
  EXPECT_EQ(record->pgmajfault, 37u);
  EXPECT_EQ(record->nr_bursts, 4u);
  EXPECT_EQ(record->burst_ns, 3000u);
  EXPECT_EQ(record->cpu_weight, 79u);
  EXPECT_EQ(record->cpu_quota_us, 50000u);
  EXPECT_EQ(record->cpu_period_us, 100000u);
  EXPECT_EQ(record->pids_max, 100u);
  EXPECT_EQ(record->io_rbytes, 4196u);
  EXPECT_EQ(record->io_wbytes, 8392u);
  EXPECT_EQ(record->io_rios, 4u);
  EXPECT_EQ(record->io_wios, 6u);
  EXPECT_EQ(record->memory_min, 4096u);
  EXPECT_EQ(record->memory_low, 8192u);
  EXPECT_EQ(record->memory_high, HR_NO_LIMIT);
  EXPECT_EQ(record->memory_max, 2097152u);
  EXPECT_EQ(record->swap_max, HR_NO_LIMIT);
  EXPECT_EQ(record->events_low, 1u);
  EXPECT_EQ(record->events_high, 2u);
  EXPECT_EQ(record->events_max, 3u);
  EXPECT_EQ(record->events_oom, 4u);
  EXPECT_EQ(record->events_oom_kill, 5u);
  EXPECT_EQ(record->cpu_usage_ns, 30'000u);
  EXPECT_EQ(record->cpu_user_ns, 20'000u);
  EXPECT_EQ(record->cpu_system_ns, 10'000u);
  EXPECT_EQ(record->nr_periods, 7u);
  EXPECT_EQ(record->nr_throttled, 6u);
  EXPECT_EQ(record->throttled_ns, 5'000u);
  EXPECT_EQ(record->psi_ns[HR_PSI_CPU][HR_PSI_SOME], 11'000u);
  EXPECT_EQ(record->psi_ns[HR_PSI_CPU][HR_PSI_FULL], 12'000u);
  EXPECT_EQ(record->psi_ns[HR_PSI_MEMORY][HR_PSI_SOME], 13'000u);
  EXPECT_EQ(record->psi_ns[HR_PSI_MEMORY][HR_PSI_FULL], 14'000u);
  EXPECT_EQ(record->psi_ns[HR_PSI_IO][HR_PSI_SOME], 15'000u);
  EXPECT_EQ(record->psi_ns[HR_PSI_IO][HR_PSI_FULL], 16'000u);
  EXPECT_EQ(record->pids_current, 9u);
}

// One file of a full cgroup spoilt: which group it costs. Nothing else may suffer.
struct Spoilt {
  const char* name;
  const char* file;
  const char* text;
  std::uint32_t lost;
};

TEST(CgroupfsSource, ASpoiltFileCostsItsGroupAlone) {
  const Spoilt cases[] = {
      {"usage_empty", "memory.current", "", HR_MEMORY_USAGE},
      {"usage_negative", "memory.current", "-4096\n", HR_MEMORY_USAGE},
      {"swap_missing_is_only_a_field", "memory.swap.current", "", 0},
      {"stat_without_inactive_file", "memory.stat", "anon 1\nfile 2\n",
       HR_MEMORY_STAT | HR_RECLAIM},
      {"stat_cut_in_the_line", "memory.stat", "anon 1\ninactive_file 12",
       HR_MEMORY_STAT | HR_RECLAIM},
      {"stat_without_pgscan", "memory.stat",
       "inactive_file 6\nworkingset_refault_file 1\npgsteal 2\n", HR_RECLAIM},
      {"peak_missing_is_only_a_field", "memory.peak", "", 0},
      {"pids_limit_missing_is_only_a_field", "pids.max", "", 0},
      {"quota_without_a_period", "cpu.max", "max\n", HR_CPU_LIMITS},
      {"weight_in_words", "cpu.weight", "default\n", HR_CPU_LIMITS},
      {"limit_in_words", "memory.max", "unlimited\n", HR_MEMORY_LIMITS},
      {"swap_limit_missing_is_only_a_field", "memory.swap.max", "", 0},
      {"events_without_oom_kill", "memory.events", "low 0\nhigh 0\nmax 0\noom 0\n",
       HR_MEMORY_EVENTS},
      {"no_bandwidth_control", "cpu.stat", "usage_usec 3\nuser_usec 2\nsystem_usec 1\n",
       HR_THROTTLE},
      {"cpu_garbage", "cpu.stat", "\x01\x02\xff\n\n", HR_CPU | HR_THROTTLE},
      {"pressure_off", "io.pressure", "", HR_PSI},
      {"no_full_line_is_only_a_field", "cpu.pressure",
       "some avg10=0.00 avg60=0.00 avg300=0.00 total=11\n", 0},
      {"pids_max", "pids.current", "max\n", HR_PIDS},
  };
  for (const Spoilt& c : cases) {
    FakeCgroup cgroup = full_cgroup("a");
    cgroup.files[c.file] = c.text;
    FakeCgroupfs tree({.name = "", .files = {}, .children = {cgroup}});
    auto source = open(tree);
    const auto record = look(*source, tree.id("a"));
    ASSERT_TRUE(record) << c.name;
    EXPECT_EQ(record->valid, kAllGroups & ~c.lost) << c.name;
    for (const RecordField& field : kRecordFields) {
      if (!(field.group & c.lost)) continue;
      EXPECT_EQ(value_of(*record, field), HR_UNKNOWN) << c.name << ": " << field.name;
    }
  }
}

TEST(CgroupfsSource, AnEmptyIoStatMeansNoIo) {
  FakeCgroup quiet = full_cgroup("quiet"), without = full_cgroup("without");
  quiet.files["io.stat"] = "";
  without.files.erase("io.stat");
  FakeCgroupfs tree({.name = "", .files = {}, .children = {quiet, without}});
  auto source = open(tree);
  const auto none_made = look(*source, tree.id("quiet"));
  const auto no_controller = look(*source, tree.id("without"));
  ASSERT_TRUE(none_made && no_controller);
  EXPECT_TRUE(none_made->valid & HR_IO);
  EXPECT_EQ(none_made->io_rbytes, 0u);
  EXPECT_FALSE(no_controller->valid & HR_IO);
  EXPECT_EQ(no_controller->io_rbytes, HR_UNKNOWN);
}

// memory.stat serves two groups: asking for one must not fill the other.
TEST(CgroupfsSource, AGroupIsFilledWhenAskedFor) {
  FakeCgroupfs tree({.name = "", .files = {}, .children = {full_cgroup("a")}});
  auto source = open(tree, HR_RECLAIM);
  const auto record = look(*source, tree.id("a"));
  ASSERT_TRUE(record);
  EXPECT_EQ(record->valid, static_cast<std::uint32_t>(HR_RECLAIM));
  EXPECT_EQ(record->anon, HR_UNKNOWN);
  EXPECT_EQ(record->pgscan, 33u);
}

TEST(CgroupfsSource, UnknownFieldsOfAValidGroup) {
  FakeCgroup cgroup = full_cgroup("a");
  cgroup.files.erase("memory.swap.current");
  cgroup.files["memory.stat"] = "inactive_file 6\n";
  FakeCgroupfs tree({.name = "", .files = {}, .children = {cgroup}});
  const auto record = look(*open(tree), tree.id("a"));
  ASSERT_TRUE(record);
  EXPECT_EQ(record->swap_usage, HR_UNKNOWN);
  EXPECT_EQ(record->inactive_file, 6u);
  EXPECT_EQ(record->anon, HR_UNKNOWN);
}

TEST(CgroupfsSource, TimeTooLongForNanosecondsIsUnknown) {
  FakeCgroup cgroup = full_cgroup("a");
  cgroup.files["cpu.stat"] = "usage_usec 18446744073709551615\nuser_usec 2\nsystem_usec 1\n";
  FakeCgroupfs tree({.name = "", .files = {}, .children = {cgroup}});
  EXPECT_EQ(look(*open(tree), tree.id("a"))->cpu_usage_ns, HR_UNKNOWN);
}

TEST(CgroupfsSource, ReadsOnlyTheGroupsAskedFor) {
  FakeCgroupfs tree({.name = "", .files = {}, .children = {full_cgroup("a")}});
  const auto record = look(*open(tree, HR_PIDS), tree.id("a"));
  ASSERT_TRUE(record);
  EXPECT_EQ(record->valid, static_cast<std::uint32_t>(HR_PIDS));
  EXPECT_EQ(record->memory_usage, HR_UNKNOWN);
  EXPECT_EQ(record->populated, 1u);
}

TEST(CgroupfsSource, TheRootIsPopulatedWithoutSayingSo) {
  FakeCgroupfs tree({.name = "", .files = {}, .children = {}});
  const auto root = look(*open(tree), tree.id(""));
  ASSERT_TRUE(root);
  EXPECT_EQ(root->parent_id, 0u);
  EXPECT_EQ(root->populated, 1u);
}

TEST(CgroupfsSource, StrangeNames) {
  FakeCgroupfs tree(
      {.name = "",
       .files = {},
       .children = {full_cgroup("with blank"), full_cgroup("new\nline"), full_cgroup(".hidden"),
                    full_cgroup("\xff\xfe"), full_cgroup("memory.max\\x2d"),
                    full_cgroup(" (deleted)"), full_cgroup(std::string(255, 'n'))}});
  auto source = open(tree);
  auto swept = source->sweep();
  ASSERT_TRUE(swept);
  EXPECT_EQ(swept->size(), 8u);
  for (const hr_record& record : swept->subspan(1))
    EXPECT_EQ(record.valid, kAllGroups);
}

TEST(CgroupfsSource, ADirectoryThatIsNoCgroupIsLeftOut) {
  FakeCgroupfs tree({.name = "",
                     .files = {},
                     .children = {{.name = "x", .files = {}, .children = {}, .bare = true}}});
  EXPECT_FALSE(look(*open(tree), tree.id("x")));
}

TEST(CgroupfsSource, ParentsBeforeChildrenAndTheirIds) {
  FakeCgroup deep = full_cgroup("c");
  FakeCgroupfs tree({.name = "",
                     .files = {},
                     .children = {{.name = "a",
                                   .files = {},
                                   .children = {{.name = "b", .files = {}, .children = {deep}}}}}});
  auto source = open(tree);
  auto swept = source->sweep();
  ASSERT_TRUE(swept);
  ASSERT_EQ(swept->size(), 4u);
  EXPECT_EQ((*swept)[1].parent_id, tree.id(""));
  EXPECT_EQ((*swept)[2].parent_id, tree.id("a"));
  EXPECT_EQ((*swept)[3].parent_id, tree.id("a/b"));
}

TEST(CgroupfsSource, SeesBirthsAndDeaths) {
  FakeCgroupfs tree({.name = "",
                     .files = {{"cgroup.stat", "nr_descendants 1\n"}},
                     .children = {full_cgroup("a")}});
  auto source = open(tree);
  const std::uint64_t a = tree.id("a");
  EXPECT_TRUE(look(*source, a));
  tree.add("", full_cgroup("b"));
  tree.write("", "cgroup.stat", "nr_descendants 2\n");
  EXPECT_TRUE(look(*source, tree.id("b")));
  tree.remove("a");
  tree.write("", "cgroup.stat", "nr_descendants 1\n");
  EXPECT_FALSE(look(*source, a));
  EXPECT_TRUE(look(*source, tree.id("b")));
}

TEST(CgroupfsSource, ValuesAreReadAnewEachTime) {
  FakeCgroupfs tree({.name = "", .files = {}, .children = {full_cgroup("a")}});
  auto source = open(tree);
  EXPECT_EQ(look(*source, tree.id("a"))->memory_usage, 1048576u);
  tree.write("a", "memory.current", "7\n");
  tree.write("a", "cgroup.events", "populated 0\n");
  const auto record = look(*source, tree.id("a"));
  EXPECT_EQ(record->memory_usage, 7u);
  EXPECT_EQ(record->populated, 0u);
}

TEST(CgroupfsSource, AControllerEnabledLaterIsFound) {
  FakeCgroup bare = full_cgroup("a");
  bare.files.erase("pids.current");
  FakeCgroupfs tree(
      {.name = "", .files = {{"cgroup.stat", "nr_descendants 1\n"}}, .children = {bare}});
  auto source = open(tree);
  EXPECT_FALSE(look(*source, tree.id("a"))->valid & HR_PIDS);
  tree.write("a", "pids.current", "3\n");
  bool found = false;
  for (int sweep = 0; sweep < 70 && !found; ++sweep)
    found = look(*source, tree.id("a"))->valid & HR_PIDS;
  EXPECT_TRUE(found);
}

TEST(CgroupfsSource, WorksWithFewDescriptors) {
  FakeCgroup root{.name = "", .files = {}, .children = {}};
  for (int i = 0; i < 20; ++i)
    root.children.push_back(full_cgroup("c" + std::to_string(i)));
  FakeCgroupfs tree(root);
  auto source = open(tree, kAllGroups, 24);
  auto swept = source->sweep();
  ASSERT_TRUE(swept);
  EXPECT_EQ(swept->size(), 21u);
  for (const hr_record& record : swept->subspan(1))
    EXPECT_EQ(record.valid, kAllGroups);
  EXPECT_EQ(source->lost(), 0u);
}

TEST(CgroupfsSource, CountsWhatItHasNoDescriptorFor) {
  FakeCgroup root{.name = "", .files = {{"cgroup.stat", "nr_descendants 20\n"}}, .children = {}};
  for (int i = 0; i < 20; ++i)
    root.children.push_back(full_cgroup("c" + std::to_string(i)));
  FakeCgroupfs tree(root);
  auto source = open(tree, kAllGroups, 8);
  auto swept = source->sweep();
  ASSERT_TRUE(swept);
  EXPECT_EQ(swept->size(), 9u);
  EXPECT_EQ(source->lost(), 12u);
}

TEST(CgroupfsSource, AllocatesNothingOnceTheTreeIsKnown) {
  FakeCgroupfs tree({.name = "",
                     .files = {{"cgroup.stat", "nr_descendants 2\n"}},
                     .children = {full_cgroup("a"), full_cgroup("b")}});
  auto source = open(tree);
  ASSERT_TRUE(source->sweep());
  const std::uint64_t before = daemon::thread_allocation_count();
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(source->sweep());
  EXPECT_EQ(daemon::thread_allocation_count() - before, 0u);
}

TEST(CgroupfsSource, NoRootIsAnError) {
  auto source = CgroupfsSource::open({.root = "/nonexistent/cgroup"});
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().what, "open cgroup /nonexistent/cgroup: No such file or directory");
}

}  // namespace
}  // namespace headroom::observe
