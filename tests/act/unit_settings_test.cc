// SPDX-License-Identifier: Apache-2.0
// Values as a unit's file has them.
#include "act/units/unit_properties.h"

#include <gtest/gtest.h>

namespace headroom::act {
namespace {

using Assignments = std::vector<std::string>;
using namespace std::chrono_literals;

TEST(UnitAssignments, AreASettingForEachValue) {
  EXPECT_EQ(unit_assignments({}), Assignments{});
  EXPECT_EQ(
      unit_assignments({.cpu_weight = CpuWeight{39},
                        .cpu_max = CpuMax{.quota = 25'000us, .period = 100ms},
                        .memory_min = 1_MiB,
                        .memory_low = 2_MiB,
                        .memory_high = 3_MiB,
                        .memory_max = Limit<Bytes>::max(),
                        .memory_swap_max = Bytes{0},
                        .memory_oom_group = false,
                        .pids_max = Tasks{7},
                        .hugetlb_max = {{2_MiB, Bytes{0}}}}),
      (Assignments{"CPUWeight=39", "CPUQuota=25.00%", "CPUQuotaPeriodSec=100000us",
                   "MemoryMin=1048576", "MemoryLow=2097152", "MemoryHigh=3145728",
                   "MemoryMax=infinity", "MemorySwapMax=0", "TasksMax=7", "OOMPolicy=continue"}));
}

// 333.3 ‰ of 3 ms: a hundredth of a percent more rather than less.
TEST(UnitAssignments, RoundAQuotaUp) {
  EXPECT_EQ(unit_assignments({.cpu_max = CpuMax{.quota = 1000us, .period = 3ms}}),
            (Assignments{"CPUQuota=33.34%", "CPUQuotaPeriodSec=3000us"}));
  EXPECT_EQ(unit_assignments({.cpu_max = CpuMax{}}),
            (Assignments{"CPUQuota=", "CPUQuotaPeriodSec=100000us"}));
}

}  // namespace
}  // namespace headroom::act
