// SPDX-License-Identifier: Apache-2.0
// The lines of CPUs in /proc/stat.
#include "observe/node/cpu_wait_source.h"

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

constexpr std::uint64_t kTick = 10'000'000;

TEST(CpuTimes, AreReadForEachCpuThatIsOnline) {
  const CpuTimes times = parse_cpu_times(
      "cpu  15 0 9 200 4 1 2 3 0 0\n"
      "cpu0 10 2 5 100 4 1 2 3 9 1\n"
      "cpu2 5 0 4 100 0 0 0 0 0 0\n"
      "intr 123 0 1\nctxt 5\n",
      100);
  ASSERT_EQ(times.size(), 3u);
  ASSERT_TRUE(times[0]);
  EXPECT_EQ(times[0]->idle, 104 * kTick);
  EXPECT_EQ(times[0]->interrupts, 6 * kTick);
  EXPECT_EQ(times[0]->tasks, 17 * kTick);  // guest time is in user
  EXPECT_FALSE(times[1]);
  EXPECT_EQ(times[2]->tasks, 9 * kTick);
}

TEST(CpuTimes, ADamagedOrCutLineIsAbsent) {
  for (const char* text :
       {"", "intr 1\n", "cpu  1 2 3 4 5 6 7 8\n", "cpu0 1 2 3 x 5 6 7 8\n", "cpu0 1 2 3\n",
        "cpu0 1 2 3 4 5 6 7 8", "cpu99999999999999999999 1 2 3 4 5 6 7 8\n"})
    for (const auto& time : parse_cpu_times(text, 100))
      EXPECT_FALSE(time) << text;
}

}  // namespace
}  // namespace headroom::observe
