// SPDX-License-Identifier: Apache-2.0
#include "observe/bpf/bpf_costs.h"

#include "base/file_io.h"
#include "observe/bpf/bpf_sweep.h"
#include "support/test_cgroup.h"

#include <bpf/bpf.h>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

TEST(BpfCosts, CountOurProgramsWhileTheKernelCounts) {
  const auto root = test::writable_cgroup2();
  if (!root) GTEST_SKIP() << "no writable cgroup v2";
  auto sweep = BpfSweep::open({.root = *root});
  ASSERT_TRUE(sweep) << sweep.error().what;
  const BpfCosts costs = BpfCosts::of_this_process();
  const Fd counting(::bpf_enable_stats(BPF_STATS_RUN_TIME));
  ASSERT_TRUE(counting) << "BPF_ENABLE_STATS, since 5.8";
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE((*sweep)->sweep());
  // One program goes from cgroup to cgroup, another takes the tree at once.
  BpfCost all;
  for (const BpfCost& cost : costs.read()) {
    EXPECT_TRUE(cost.program.starts_with("sweep")) << cost.program;
    all.runs += cost.runs;
    all.run += cost.run;
  }
  EXPECT_GE(all.runs, 3u);
  EXPECT_GT(all.run.count(), 0);
}

TEST(BpfCosts, AreNoneWithoutPrograms) {
  EXPECT_TRUE(BpfCosts::of_this_process().read().empty());
}

}  // namespace
}  // namespace headroom::observe
