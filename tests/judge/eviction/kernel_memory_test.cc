// SPDX-License-Identifier: Apache-2.0
// kernel.memAvailable: memory that the kernel holds for pods, which memory.available does not see.
#include "judge/eviction/next_check.h"
#include "judge/eviction/threshold/threshold.h"
#include "judge/eviction/threshold/threshold_config.h"
#include "support/story.h"

#include <gtest/gtest.h>

namespace headroom {
namespace {

using namespace test;
using judge_eviction::memory_left;
using Lines = std::vector<std::string>;
const Lines kNothing;

Policy both_thresholds() {
  Policy policy;
  policy.mode = Mode::kEnforce;
  policy.thresholds = {memory_below(100_MiB), below(Signal::kKernelMemAvailable, (50_MiB).count)};
  return policy;
}

// "cache" reads files, "pipes" fills pipes, "web" has anonymous memory.
class KernelMemory : public ::testing::Test {
 protected:
  KernelMemory() {
    charge(story.pod("cache", 900_MiB), 100_MiB, 800_MiB, 0_MiB);
    charge(story.pod("pipes", 600_MiB), 10_MiB, 0_MiB, 0_MiB);
    charge(story.pod("web", 300_MiB), 300_MiB, 0_MiB, 0_MiB);
    charge(story.pod("dentries", 700_MiB), 10_MiB, 0_MiB, 650_MiB);
  }
  void charge(std::size_t pod, Bytes anon, Bytes file, Bytes slab) {
    hr_record& record = story.record(pod);
    record.anon = static_cast<hr_u64>(anon.count);
    record.file = static_cast<hr_u64>(file.count);
    record.slab_reclaimable = static_cast<hr_u64>(slab.count);
    record.shmem = record.kernel_stack = record.pagetables = 0;
  }
  Lines step(std::int64_t ms, Bytes memory, Bytes kernel) {
    story.step(ms, {{Signal::kMemoryAvailable, memory.count},
                    {Signal::kKernelMemAvailable, kernel.count}});
    return story.decided();
  }

  Story story{both_thresholds()};
};

TEST_F(KernelMemory, EvictsThePodThatHoldsItAndSaysWhy) {
  EXPECT_EQ(step(0, 1_GiB, 51_MiB), kNothing);
  EXPECT_EQ(step(100, 1_GiB, 49_MiB), Lines{"kill pipes"});
  const Decision& decision = story.verdict.decisions.front();
  EXPECT_EQ(decision.reason.signal, Signal::kKernelMemAvailable);
  EXPECT_EQ(decision.reason.threshold, (50_MiB).count);
  EXPECT_EQ(decision.reason.available, (49_MiB).count);
  EXPECT_EQ(*decision.rank_info.usage, (600_MiB).count);
  EXPECT_EQ(*decision.rank_info.predicted, (600_MiB).count) << "pipes go with their processes";
  EXPECT_TRUE(story.verdict.conditions[static_cast<std::size_t>(Condition::kMemoryPressure)]);
}

TEST_F(KernelMemory, OneVictimServesBothThresholds) {
  EXPECT_EQ(step(0, 99_MiB, 49_MiB).size(), 1u);
  EXPECT_EQ(story.verdict.decisions.front().reason.signal, Signal::kMemoryAvailable);
  EXPECT_EQ(step(5, 99_MiB, 49_MiB), kNothing) << "it has yet to give its memory back";
}

TEST_F(KernelMemory, AnUnknownReadingEvictsNoPod) {
  story.step(0, 1_GiB);
  EXPECT_EQ(story.decided(), kNothing);
}

TEST_F(KernelMemory, FreeSwapCountsAsFarAsItGains) {
  story.swap = SwapReading{.mem_available = (10_MiB).count,
                           .disk = {.total = (1_GiB).count, .free = (60_MiB).count}};
  EXPECT_EQ(step(0, 1_GiB, 10_MiB), Lines{"kill cache"}) << "memory.available counts it too";
  EXPECT_EQ(story.verdict.decisions.front().reason.signal, Signal::kMemoryAvailable);
  EXPECT_EQ(*story.verdict.thresholds[1].available, (70_MiB).count);
}

TEST_F(KernelMemory, ActsWhereSwapIsNotCounted) {
  story.policy.swap_aware = false;
  story.swap = SwapReading{.mem_available = (10_MiB).count,
                           .disk = {.total = (1_GiB).count, .free = (30_MiB).count}};
  EXPECT_EQ(step(0, 1_GiB, 10_MiB), Lines{"kill pipes"});
  EXPECT_EQ(story.verdict.decisions.front().reason.signal, Signal::kKernelMemAvailable);
  EXPECT_EQ(story.verdict.decisions.front().reason.available, (40_MiB).count);
}

TEST_F(KernelMemory, IsForecastAndBringsTheNextCheckForward) {
  step(0, 4_GiB, 650_MiB);
  step(1000, 4_GiB, 550_MiB);
  ASSERT_TRUE(story.verdict.thresholds[1].time_to);
  EXPECT_GT(*story.verdict.thresholds[1].time_to, std::chrono::seconds(4));
  EXPECT_EQ(memory_left(story.policy, story.verdict), 500_MiB) << "the guard wakes up by then";
  step(1100, 4_GiB, 60_MiB);
  EXPECT_LT(story.verdict.next_check - at_ms(1100), std::chrono::milliseconds(3));
}

// --- its threshold ------------------------------------------------------------------------------

TEST(KernelMemThreshold, AccompaniesTheHardOneOfMemoryAvailable) {
  struct Case {
    const char* name;
    std::vector<Threshold> thresholds;
    KernelMemThreshold settings;
    std::optional<std::int64_t> limit;  // of 10000 MiB, in MiB
  };
  const auto amount = [](Bytes bytes) {
    return ThresholdValue{Quantity::of(bytes.count, Quantity::Format::kBinarySI)};
  };
  Threshold tenth = memory_below(1_MiB);
  tenth.value = Fraction{0.1f};
  const Case cases[] = {
      {"the_kubelets_default", {memory_below(100_MiB)}, {}, 50},
      {"a_large_one", {memory_below(1_GiB)}, {}, 50},
      {"a_percentage", {tenth}, {}, 50},
      {"a_small_one", {memory_below(30_MiB)}, {}, 15},
      {"a_soft_one_alone", {memory_below(30_MiB, std::chrono::seconds(1))}, {}, std::nullopt},
      {"none", {}, {}, std::nullopt},
      {"configured", {memory_below(30_MiB)}, {true, amount(80_MiB)}, 80},
      {"a_percentage_alone", {}, {true, Fraction{0.5f}}, 5000},
      {"off", {memory_below(100_MiB)}, {true, std::nullopt}, std::nullopt},
  };
  for (const Case& c : cases) {
    const auto threshold = kernel_mem_threshold(c.settings, c.thresholds);
    ASSERT_EQ(threshold.has_value(), c.limit.has_value()) << c.name;
    if (!threshold) continue;
    EXPECT_EQ(threshold->signal, Signal::kKernelMemAvailable) << c.name;
    EXPECT_TRUE(threshold->hard()) << c.name;
    EXPECT_EQ(resolve(threshold->value, (10'000_MiB).count) >> 20, *c.limit) << c.name;
  }
}

}  // namespace
}  // namespace headroom
