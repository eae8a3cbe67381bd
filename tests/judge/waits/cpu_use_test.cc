// SPDX-License-Identifier: Apache-2.0
// How much of the CPUs each pod used, and what of another pod's wait is due to it.
#include "judge/waits/cpu_use.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom {
namespace {

constexpr Duration kWindow = std::chrono::seconds(5);
constexpr double kSecond = 1e9;
constexpr CgroupId kOutside{0}, kA{1}, kB{2}, kC{3};

struct Case {
  const char* name;
  std::vector<CpuLoser> losers;
  std::vector<CpuRunner> runners;
  std::vector<CpuUse> expected;  // of the pods among the runners
  bool c_is_apart = false;       // c shares no CPU with another pod
};

const std::vector<Case> kCases{
    {"nothing_ran", {}, {}, {}},
    {"no_wait", {}, {{kA, 5 * kSecond}}, {{.used = {1000}, .held_up = 0}}},
    {"less_than_a_hundredth_is_no_loss",
     {{kA, 0.04 * kSecond}},
     {{kA, 0}, {kB, 5 * kSecond}},
     {{}, {.used = {1000}, .held_up = 0}}},
    {"two_equal_pods_hold_each_other_up",
     {{kA, 4 * kSecond}, {kB, 4 * kSecond}},
     {{kA, 5 * kSecond}, {kB, 5 * kSecond}},
     {{.used = {1000}, .held_up = 400'000}, {.used = {1000}, .held_up = 400'000}}},
    {"the_loser_that_lost_most_counts",
     {{kA, 1 * kSecond}, {kB, 2 * kSecond}},
     {{kA, 0}, {kB, 0}, {kC, 10 * kSecond}},
     {{}, {}, {.used = {2000}, .held_up = 400'000}}},
    {"but_not_for_itself",
     {{kA, 5 * kSecond}, {kB, 1 * kSecond}},
     {{kA, 9 * kSecond}, {kB, 1 * kSecond}},
     {{.used = {1800}, .held_up = 180'000}, {.used = {200}, .held_up = 100'000}}},
    {"what_is_outside_pods_has_its_part",
     {{kA, 5 * kSecond}},
     {{kA, 0}, {kB, 5 * kSecond}, {kOutside, 5 * kSecond}},
     {{}, {.used = {1000}, .held_up = 500'000}}},
    {"a_pod_on_cpus_of_its_own_holds_nothing_up",
     {{kA, 5 * kSecond}},
     {{kA, 0}, {kB, 5 * kSecond}, {kC, 5 * kSecond}},
     {{}, {.used = {1000}, .held_up = 1'000'000}, {.used = {1000}, .held_up = 0}},
     true},
};

TEST(CpuUses, AreOfThePodThatLostMost) {
  const CpuSet shared{0, 1}, apart{2};
  for (const Case& each : kCases) {
    const CpuUses uses = cpu_uses(kWindow, each.losers, each.runners, [&](CgroupId pod) {
      return each.c_is_apart && pod == kC ? &apart : &shared;
    });
    EXPECT_EQ(uses.values, each.expected) << each.name;
    std::vector<std::uint64_t> pods;
    for (const CpuRunner& runner : each.runners)
      if (runner.pod != kOutside) pods.push_back(runner.pod.value);
    EXPECT_EQ(uses.ids, pods) << each.name;
  }
}

TEST(CpuUses, AWindowWithoutLengthSaysNothing) {
  EXPECT_TRUE(cpu_uses({}, {}, std::vector<CpuRunner>{{kA, 1}}, [](CgroupId) -> const CpuSet* {
                return nullptr;
              }).ids.empty());
}

}  // namespace
}  // namespace headroom
