// SPDX-License-Identifier: Apache-2.0
#include "report/kernel_oom.h"

#include "report/sample.h"

#include <gtest/gtest.h>

namespace headroom::report {
namespace {

KernelOomKill sample() {
  return {.cgroup = CgroupId{4},
          .path = "/kubepods.slice/pod1.slice/app.service",
          .pod = test::sample_pod("hog", QosClass::kBestEffort),
          .pid = 4242,
          .comm = "workload",
          .limit_of = CgroupId{4},
          .limit_path = "/kubepods.slice/pod1.slice/app.service"};
}

TEST(KernelOom, NamesTheVictimAndTheLimit) {
  KernelOomKill kill = sample();
  EXPECT_EQ(kernel_oom_line(kill),
            "the kernel killed process 4242 (workload) of default/hog "
            "(/kubepods.slice/pod1.slice/app.service): memory.max of its cgroup was hit");
  kill.limit_of = CgroupId{3};
  kill.limit_path = "/kubepods.slice/pod1.slice";
  EXPECT_TRUE(kernel_oom_line(kill).ends_with("memory.max of /kubepods.slice/pod1.slice was hit"));
}

TEST(KernelOom, NamesTheNodeWhenNoLimitWasHit) {
  KernelOomKill kill = sample();
  kill.limit_of.reset();
  EXPECT_TRUE(kernel_oom_line(kill).ends_with(": the node ran out of memory"));
}

TEST(KernelOom, NamesThePodHeadroomWouldHaveEvicted) {
  KernelOomKill kill = sample();
  kill.would_evict = test::sample_pod("other", QosClass::kBestEffort);
  EXPECT_EQ(kernel_oom_line(kill).find("other"), std::string::npos) << "no choice at a limit";
  kill.limit_of.reset();
  EXPECT_FALSE(kill.same_choice());
  EXPECT_TRUE(kernel_oom_line(kill).ends_with(
      ": the node ran out of memory; headroom would have evicted default/other"));
  kill.would_evict = kill.pod;
  EXPECT_TRUE(kill.same_choice());
  EXPECT_TRUE(kernel_oom_line(kill).ends_with(": the node ran out of memory"));
}

TEST(KernelOom, AtTheLimitOfAllPodsTheKernelChoseAPod) {
  KernelOomKill kill = sample();
  kill.would_evict = test::sample_pod("other", QosClass::kBestEffort);
  EXPECT_FALSE(kill.had_all_pods());
  kill.limit_of = CgroupId{2};
  kill.limit_path = "/kubepods.slice";
  kill.limit_of_pods = true;
  EXPECT_TRUE(kill.had_all_pods());
  EXPECT_TRUE(kernel_oom_line(kill).ends_with(
      ": memory.max of /kubepods.slice was hit; headroom would have evicted default/other"));
}

TEST(KernelOom, WithoutAPodOrANameTheIdIsShown) {
  KernelOomKill kill = sample();
  kill.pod = nullptr;
  kill.path.clear();
  EXPECT_EQ(kernel_oom_line(kill),
            "the kernel killed process 4242 (workload) of cgroup 4: memory.max of its cgroup was "
            "hit");
}

}  // namespace
}  // namespace headroom::report
