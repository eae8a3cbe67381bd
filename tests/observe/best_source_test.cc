// SPDX-License-Identifier: Apache-2.0
// The choice of a source where BPF is not to be had; with BPF: tests/bpf.
#include "observe/best_source.h"

#include "support/fake_cgroupfs.h"

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

using test::FakeCgroupfs;
using test::full_cgroup;

TEST(BestSource, FilesAloneWhenConfiguredSo) {
  FakeCgroupfs tree({.name = "", .files = {}, .children = {full_cgroup("a")}});
  auto best = BestSource::open(
      {.root = tree.root(), .groups = kAllGroups & ~static_cast<unsigned>(HR_PIDS), .bpf = false});
  ASSERT_TRUE(best);
  EXPECT_EQ((*best)->name(), "files");
  EXPECT_EQ((*best)->group_sources()[0], "files");
  EXPECT_EQ((*best)->group_sources()[7], "none");
  EXPECT_EQ((*best)->source_notes(), std::vector<std::string>{"bpf: turned off"});
  auto swept = (*best)->sweep();
  ASSERT_TRUE(swept);
  EXPECT_EQ(swept->size(), 2u);
}

TEST(BestSource, ADecisionReadsNoFileForIo) {
  FakeCgroupfs tree({.name = "", .files = {}, .children = {full_cgroup("a")}});
  auto best = BestSource::open({.root = tree.root(), .bpf = false});
  ASSERT_TRUE(best);
  for (const bool decision : {false, true, false}) {
    (*best)->set_compare_usage(decision);
    const auto swept = (*best)->sweep();
    ASSERT_TRUE(swept && swept->size() == 2);
    EXPECT_EQ(swept->back().valid & HR_IO, decision ? 0u : std::uint32_t{HR_IO});
    EXPECT_TRUE(swept->back().valid & HR_MEMORY_USAGE);
  }
}

TEST(BestSource, ATreeThatIsNoCgroupfsFallsBackToFilesAndSaysWhy) {
  FakeCgroupfs tree({.name = "", .files = {}, .children = {full_cgroup("a")}});
  auto best = BestSource::open({.root = tree.root()});
  ASSERT_TRUE(best);
  EXPECT_EQ((*best)->name(), "files");
  ASSERT_EQ((*best)->source_notes().size(), 1u);
  EXPECT_TRUE((*best)->source_notes()[0].starts_with("bpf: ")) << (*best)->source_notes()[0];
  EXPECT_EQ((*best)->sweep()->size(), 2u);
}

TEST(BestSource, NothingToReadIsAnError) {
  EXPECT_FALSE(BestSource::open({.root = "/nonexistent/cgroup"}));
}

TEST(Groups, ListAsWords) {
  EXPECT_EQ(group_list(0), "none");
  EXPECT_EQ(group_list(HR_MEMORY_USAGE | HR_PSI), "memory_usage, psi");
}

}  // namespace
}  // namespace headroom::observe
