// SPDX-License-Identifier: Apache-2.0
// The judge walked through stepped instants: hard, soft, grace, hysteresis, the dying, the unknown.
#include "judge/eviction/next_check.h"
#include "judge/eviction/rank/rank.h"
#include "judge/eviction/selection.h"
#include "support/story.h"

#include <random>

#include <gtest/gtest.h>

namespace headroom {
namespace {

using namespace test;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Lines = std::vector<std::string>;
const Lines kNothing;

Policy hard_below(Bytes value) {
  Policy policy;
  policy.thresholds = {memory_below(value)};
  policy.mode = Mode::kEnforce;
  return policy;
}

Policy soft_and_hard() {
  Policy policy = hard_below(200_MiB);
  policy.thresholds.push_back(memory_below(500_MiB, seconds(30)));
  policy.max_pod_grace = seconds(10);
  return policy;
}

TEST(HardThreshold, EqualIsNotBelow) {
  Story story(hard_below(200_MiB));
  story.pod("hog", 1_GiB);
  story.step(0, 200_MiB);
  EXPECT_EQ(story.decided(), kNothing);
  story.step(10, 200_MiB - 1_B);
  EXPECT_EQ(story.decided(), Lines{"kill hog"});
}

// It may be a node-critical one: its description is on its way.
TEST(HardThreshold, APodWithoutManifestYetIsEvictedLast) {
  Story story(hard_below(200_MiB));
  const auto unknown = story.pod("unknown", 2_GiB);
  const auto critical = story.pod("critical", 2_GiB);
  const auto idle = story.pod("idle", 1_GiB, 2_GiB, 1000);
  story.reading(unknown).description = PodDescription::kAwaited;
  story.reading(critical).description = PodDescription::kAwaitedProtected;
  story.record(idle).valid = 0;  // even with no reading of it
  story.step(0, 100_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill idle"});
}

TEST(HardThreshold, OfPodsWithoutManifestYetTheProtectedIsLast) {
  Story story(hard_below(200_MiB));
  const auto critical = story.pod("critical", 2_GiB);
  const auto unknown = story.pod("unknown", 1_GiB);
  story.reading(critical).description = PodDescription::kAwaitedProtected;
  story.reading(unknown).description = PodDescription::kAwaited;
  story.step(0, 100_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill unknown"});
}

TEST(HardThreshold, KillsOnePodAndWaitsForItsMemory) {
  Story story(hard_below(200_MiB));
  const auto hog = story.pod("hog", 2_GiB);
  story.pod("web", 1_GiB);
  story.step(0, 100_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill hog"});
  story.step(5, 100_MiB);
  EXPECT_EQ(story.decided(), kNothing) << "the next waits until the first has given back";
  story.record(hog).populated = 0;
  story.record(hog).memory_usage = 1 << 20;
  story.step(10, 2_GiB);
  ASSERT_EQ(story.verdict.eviction_ends.size(), 1u);
  EXPECT_TRUE(story.verdict.eviction_ends[0].gone);
  EXPECT_EQ(story.verdict.eviction_ends[0].memory_returned, 2_GiB - 1_MiB);
  EXPECT_TRUE(story.history.victims.empty());
}

TEST(HardThreshold, KillsTheNextAfterTheFirstIsGoneWhenOneWasNotEnough) {
  Story story(hard_below(200_MiB));
  story.pod("hog", 2_GiB);
  story.pod("web", 1_GiB);
  story.step(0, 100_MiB);
  story.remove_pod(0);
  story.step(10, 150_MiB);
  EXPECT_EQ(story.verdict.eviction_ends.size(), 1u);
  EXPECT_EQ(story.decided(), kNothing) << "what it gave back may not be in this sample yet";
  EXPECT_LE(story.verdict.next_check, at_ms(15));
  story.step(15, 150_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill web"});
}

TEST(HardThreshold, AVictimThatDoesNotExitTimesOutAndTheNextIsChosen) {
  Story story(hard_below(200_MiB));
  story.pod("stuck", 512_MiB);
  story.pod("web", 256_MiB);
  story.step(0, 100_MiB);
  story.step(10, 100_MiB);
  story.step(1399, 100_MiB);
  EXPECT_EQ(story.decided(), kNothing) << "1 s and 0.8 s/GiB are not over";
  story.step(1401, 100_MiB);
  ASSERT_EQ(story.verdict.eviction_ends.size(), 1u);
  EXPECT_FALSE(story.verdict.eviction_ends[0].gone);
  EXPECT_EQ(story.decided(), Lines{"kill web"});
}

TEST(HardThreshold, AVictimThatReleasesMemorySlowlyIsWaitedFor) {
  Story story(hard_below(200_MiB));
  const auto slow = story.pod("slow", 512_MiB);
  story.pod("web", 256_MiB);
  story.step(0, 100_MiB);
  for (int ms = 500; ms <= 4500; ms += 500) {
    story.record(slow).memory_usage -= 8 << 20;
    story.step(ms, 100_MiB);
    EXPECT_EQ(story.decided(), kNothing) << ms;
  }
  story.record(slow).memory_usage -= 4096;  // not worth a wait
  story.step(5499, 100_MiB);
  EXPECT_EQ(story.decided(), kNothing);
  story.step(5501, 100_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill web"});
}

TEST(HardThreshold, AVictimThatStillRunsIsWaitedFor) {
  Story story(hard_below(200_MiB));
  const auto reclaiming = story.pod("reclaiming", 512_MiB);
  story.pod("web", 256_MiB);
  story.record(reclaiming).valid |= HR_CPU;
  story.record(reclaiming).cpu_usage_ns = 0;
  story.step(0, 100_MiB);
  for (int ms = 500; ms <= 4500; ms += 500) {
    story.record(reclaiming).cpu_usage_ns += 5'000'000;
    story.step(ms, 100_MiB);
    EXPECT_EQ(story.decided(), kNothing) << ms;
  }
  story.step(5501, 100_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill web"}) << "the victim is stuck";
}

TEST(HardThreshold, ADelayedLoopTreatsNoVictimAsStuck) {
  Story story(hard_below(200_MiB));
  story.pod("hog", 512_MiB);
  story.pod("web", 256_MiB);
  story.step(0, 100_MiB);
  story.step(5000, 100_MiB);  // the first pass since the kill
  EXPECT_EQ(story.decided(), kNothing);
  story.step(6401, 100_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill web"});
}

// A task that is frozen does not die of SIGKILL before it is thawed.
TEST(HardThreshold, ASuspendedMachineTreatsNoVictimAsStuck) {
  Story story(hard_below(200_MiB));
  const auto hog = story.pod("hog", 512_MiB);
  story.pod("web", 256_MiB);
  for (const int ms : {0, 5, 10})
    story.step(ms, 100_MiB);
  for (const int ms : {30'000, 30'005, 30'500}) {
    story.step(ms, 100_MiB);
    EXPECT_EQ(story.decided(), kNothing) << ms;
  }
  story.record(hog).populated = 0;
  story.step(30'600, 612_MiB);
  ASSERT_EQ(story.verdict.eviction_ends.size(), 1u);
  EXPECT_TRUE(story.verdict.eviction_ends[0].gone);
}

TEST(HardThreshold, AVictimIsStuckAfterTheTimeThatItsSuspensionLeftIt) {
  Story story(hard_below(200_MiB));
  story.pod("hog", 512_MiB);
  story.pod("web", 256_MiB);
  for (const int ms : {0, 5, 10, 30'000, 31'000})
    story.step(ms, 100_MiB);
  EXPECT_EQ(story.decided(), kNothing);
  story.step(31'500, 100_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill web"});
}

TEST(HardThreshold, NoVictimIsWaitedForLongerThan30Seconds) {
  Story story(hard_below(200_MiB));
  const auto slow = story.pod("slow", 1_GiB);
  story.pod("web", 256_MiB);
  story.step(0, 100_MiB);
  for (int ms = 500; ms <= 30'500; ms += 500) {
    story.record(slow).memory_usage -= 2 << 20;
    story.step(ms, 100_MiB);
    EXPECT_EQ(story.decided(), ms < 30'000 ? kNothing : Lines{"kill web"}) << ms;
    if (!story.decided().empty()) break;
  }
}

TEST(HardThreshold, AFailedKillIsNotDone) {
  Story story(hard_below(200_MiB));
  story.pod("hog", 2_GiB);
  story.step(0, 100_MiB, Outcome::Result::kFailed);
  EXPECT_EQ(story.decided(), Lines{"kill hog"});
  story.step(5, 100_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill hog"});
}

TEST(HardThreshold, APodGoneBeforeTheKillIsNoVictim) {
  Story story(hard_below(200_MiB));
  story.pod("hog", 2_GiB);
  story.pod("web", 1_GiB);
  story.step(0, 100_MiB, Outcome::Result::kGone);
  EXPECT_TRUE(story.history.victims.empty());
  story.remove_pod(0);
  story.step(5, 2_GiB);
  EXPECT_EQ(story.decided(), kNothing) << "the memory came back by itself";
}

TEST(HardThreshold, ASampleIsEvaluatedOnce) {
  Story story(hard_below(200_MiB));
  story.pod("hog", 2_GiB);
  story.step(0, 100_MiB, Outcome::Result::kFailed);
  story.step(0, 100_MiB);
  EXPECT_EQ(story.decided(), kNothing);
}

TEST(HardThreshold, GrantsOneSecondOfGraceWhenConfigured) {
  Policy policy = hard_below(200_MiB);
  policy.hard_grace = seconds(1);
  Story story(policy);
  story.pod("hog", 2_GiB);
  story.step(0, 100_MiB);
  EXPECT_EQ(story.decided(), Lines{"terminate hog"});
  story.step(1000, 100_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill hog"});
}

TEST(SoftThreshold, ActsExactlyWhenTheGracePeriodIsOver) {
  Story story(soft_and_hard());
  story.pod("hog", 2_GiB);
  story.step(1000, 400_MiB);
  EXPECT_EQ(story.decided(), kNothing);
  story.step(30'999, 400_MiB);
  EXPECT_EQ(story.decided(), kNothing);
  story.step(31'000, 400_MiB);
  EXPECT_EQ(story.decided(), Lines{"terminate hog"});
}

TEST(SoftThreshold, OneGoodSampleRestartsTheGracePeriod) {
  Story story(soft_and_hard());
  story.pod("hog", 2_GiB);
  story.step(0, 400_MiB);
  story.step(20'000, 600_MiB);
  story.step(21'000, 400_MiB);
  story.step(50'999, 400_MiB);
  EXPECT_EQ(story.decided(), kNothing);
  story.step(51'000, 400_MiB);
  EXPECT_EQ(story.decided(), Lines{"terminate hog"});
}

TEST(SoftThreshold, AMissingReadingNeitherMeetsNorClearsTheThreshold) {
  Story story(soft_and_hard());
  story.pod("hog", 2_GiB);
  story.step(0, 400_MiB);
  story.step(31'000, std::nullopt);
  EXPECT_EQ(story.decided(), kNothing);
  story.step(31'010, 400_MiB);
  EXPECT_EQ(story.decided(), Lines{"terminate hog"}) << "the clock had gone on";
}

struct GraceCase {
  const char* name;
  int maximum;
  std::optional<int> own;
  const char* act;
  int grace;
};
class SoftGrace : public testing::TestWithParam<GraceCase> {};
INSTANTIATE_TEST_SUITE_P(
    Grace, SoftGrace,
    testing::Values(GraceCase{"the_maximum_caps_the_pods_own", 10, 60, "terminate hog", 10},
                    GraceCase{"the_pods_own_is_shorter", 10, 5, "terminate hog", 5},
                    GraceCase{"a_pod_that_says_nothing_has_thirty", 60, {}, "terminate hog", 30},
                    GraceCase{"zero_is_at_once", 0, 60, "kill hog", 0},
                    GraceCase{"negative_defers_to_the_pod", -1, 60, "terminate hog", 60}),
    [](const auto& row) { return row.param.name; });
TEST_P(SoftGrace, IsGranted) {
  Policy policy = soft_and_hard();
  policy.max_pod_grace = seconds(GetParam().maximum);
  Story story(policy);
  auto pod = std::make_shared<Pod>(*story.reading(story.pod("hog", 1_GiB)).pod);
  if (GetParam().own) pod->termination_grace = seconds(*GetParam().own);
  story.reading(0).pod = pod;
  story.step(0, 400_MiB);
  story.step(30'000, 400_MiB);
  ASSERT_EQ(story.decided(), Lines{GetParam().act});
  if (GetParam().grace > 0) {
    EXPECT_EQ(story.verdict.decisions[0].deadline, at_ms(30'000) + seconds(GetParam().grace));
  }
}

TEST(SoftThreshold, TheKillFollowsWhenThePodIgnoresSigterm) {
  Story story(soft_and_hard());
  story.pod("deaf", 2_GiB);
  story.step(0, 400_MiB);
  story.step(30'000, 400_MiB);
  story.step(39'999, 400_MiB);
  EXPECT_EQ(story.decided(), kNothing);
  story.step(40'000, 400_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill deaf"});
  EXPECT_FALSE(story.verdict.decisions[0].reason.hard) << "it dies of the soft threshold";
}

TEST(SoftThreshold, GraceBeginsWhenTheSignalIsSent) {
  Story story(soft_and_hard());
  story.pod("deaf", 2_GiB);
  story.step(0, 400_MiB);
  judge(story.policy, story.snapshot(30'000, 400_MiB), story.history, story.verdict);
  ASSERT_EQ(story.decided(), Lines{"terminate deaf"});
  const Outcome late{.decision = story.verdict.decisions[0],
                     .result = Outcome::Result::kDone,
                     .error = 0,
                     .at = at_ms(30'700)};
  record_outcome(late, story.verdict.after);
  EXPECT_EQ(story.verdict.after.victims.at(0).deadline, at_ms(40'700));
}

TEST(SoftThreshold, ATerminatingVictimIsKilledEvenIfMemoryRecovered) {
  Story story(soft_and_hard());
  story.pod("deaf", 2_GiB);
  story.step(0, 400_MiB);
  story.step(30'000, 400_MiB);
  story.step(40'000, 2_GiB);
  EXPECT_EQ(story.decided(), Lines{"kill deaf"}) << "half-dead pods are of no use";
}

TEST(SoftThreshold, OnePodAtATime) {
  Story story(soft_and_hard());
  story.pod("hog", 2_GiB);
  story.pod("web", 1_GiB);
  story.step(0, 400_MiB);
  story.step(30'000, 400_MiB);
  story.step(31'000, 400_MiB);
  EXPECT_EQ(story.decided(), kNothing);
}

TEST(SoftAndHard, TerminatingVictimsAreKilledFirstAtTheHardThreshold) {
  Story story(soft_and_hard());
  story.pod("hog", 2_GiB);
  story.step(0, 400_MiB);
  story.step(30'000, 400_MiB);
  story.pod("bigger", 3_GiB);
  story.step(31'000, 100_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill hog"});
  EXPECT_TRUE(story.verdict.decisions[0].reason.hard);
}

TEST(MinReclaim, KeepsTheThresholdMetUntilEnoughIsFree) {
  Policy policy = hard_below(200_MiB);
  policy.thresholds[0].min_reclaim = Quantity::of((300_MiB).count);
  Story story(policy);
  story.pod("hog", 2_GiB);
  story.pod("web", 1_GiB);
  story.step(0, 100_MiB);
  story.remove_pod(0);
  story.step(10, 499_MiB);
  story.step(15, 499_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill web"}) << "200 + 300 MiB are not free yet";
  story.remove_pod(0);
  story.step(20, 500_MiB);
  EXPECT_FALSE(story.verdict.thresholds[0].met);
}

TEST(Conditions, ASoftThresholdSetsTheConditionForTheTransitionPeriod) {
  Story story(soft_and_hard());
  const auto pressure = [&] { return story.verdict.conditions[0]; };
  story.step(0, 1_GiB);
  EXPECT_FALSE(pressure());
  story.step(1000, 400_MiB);
  EXPECT_TRUE(pressure());
  story.step(1000 + 299'999, 1_GiB);
  EXPECT_TRUE(pressure());
  story.step(1000 + 300'000, 1_GiB);
  EXPECT_FALSE(pressure());
}

TEST(Choice, CriticalTerminatingEmptyAndUnknownPodsAreNotChosen) {
  Story story(hard_below(200_MiB));
  story.reading(story.pod("critical", 3_GiB)).critical = true;
  story.record(story.pod("empty", 2_GiB)).populated = 0;
  story.record(story.pod("unknown", 2_GiB)).valid = 0;
  story.pod("known", 1_MiB);
  story.step(0, 100_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill known"});
}

TEST(Choice, AnUnknownPodIsChosenBeforeAKernelOomKill) {
  Story story(hard_below(200_MiB));
  story.record(story.pod("unknown", 2_GiB)).valid = 0;
  story.step(0, 100_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill unknown"});
}

TEST(Choice, NoCandidateMeansNoDecision) {
  Story story(hard_below(200_MiB));
  story.step(0, 100_MiB);
  EXPECT_EQ(story.decided(), kNothing);
  EXPECT_EQ(story.verdict.next_check, at_ms(100)) << "and it does not spin";
}

TEST(ObserveMode, ReportsAnEvictionOnce) {
  Story story(soft_and_hard());
  story.pod("hog", 2_GiB);
  story.step(0, 100_MiB, Outcome::Result::kDryRun);
  EXPECT_EQ(story.decided(), Lines{"kill hog"});
  story.step(10, 100_MiB, Outcome::Result::kDryRun);
  EXPECT_EQ(story.decided(), kNothing);
  story.step(20, 1_GiB);
  story.step(30, 100_MiB, Outcome::Result::kDryRun);
  EXPECT_EQ(story.decided(), Lines{"kill hog"});
}

TEST(NodeSnapshot, NodeReadingsSufficeFarFromThresholds) {
  Story story(hard_below(200_MiB));
  judge(story.policy, story.snapshot(0, 2_GiB, false), story.history, story.verdict);
  EXPECT_FALSE(story.verdict.needs_cgroups);
  judge(story.policy, story.snapshot(1, 100_MiB, false), story.history, story.verdict);
  EXPECT_TRUE(story.verdict.needs_cgroups);
}

TEST(NodeSnapshot, WithoutCgroupsVictimsAreKeptAndRetried) {
  Story story(hard_below(200_MiB));
  story.pod("hog", 2_GiB);
  story.step(0, 100_MiB);
  judge(story.policy, story.snapshot(5, 100_MiB, false), story.history, story.verdict);
  EXPECT_TRUE(story.verdict.needs_cgroups);
  EXPECT_EQ(story.verdict.after.victims.size(), 1u);
  EXPECT_EQ(story.verdict.next_check, at_ms(10));
}

struct WatchCase {
  const char* name;
  Bytes available;
  Duration wait;
};
class CheckSchedule : public testing::TestWithParam<WatchCase> {};
INSTANTIATE_TEST_SUITE_P(
    Distance, CheckSchedule,
    testing::Values(WatchCase{"far_away_the_ceiling", 3_GiB, seconds(1)},
                    WatchCase{"half_a_gigabyte_off_half_a_second", 712_MiB, milliseconds(500)},
                    WatchCase{"sixteen_megabytes_off", 216_MiB,
                              milliseconds(15) + std::chrono::microseconds(625)},
                    WatchCase{"next_to_it_the_floor", 200_MiB, milliseconds(2)}),
    [](const auto& row) { return row.param.name; });
TEST_P(CheckSchedule, IsDueWhenTheHeadroomCouldBeUsedUp) {
  Policy policy = hard_below(200_MiB);
  policy.fastest_fill = std::int64_t{1} << 30;
  Story story(policy);
  story.step(0, GetParam().available);
  EXPECT_EQ(story.verdict.next_check, at_ms(0) + GetParam().wait);
}

struct VictimWatchCase {
  const char* name;
  Bytes available;
  Duration wait;
};
class VictimWatch : public testing::TestWithParam<VictimWatchCase> {};
INSTANTIATE_TEST_SUITE_P(MemoryLeft, VictimWatch,
                         testing::Values(VictimWatchCase{"much", 199_MiB, milliseconds(20)},
                                         VictimWatchCase{"forty_milliseconds_of_the_fastest_fill",
                                                         40_MiB, milliseconds(10)},
                                         VictimWatchCase{"little", 8_MiB, milliseconds(5)},
                                         VictimWatchCase{"none", 0_MiB, milliseconds(5)}),
                         [](const auto& row) { return row.param.name; });
TEST_P(VictimWatch, IsNoCloserThanTheMemoryLeftAsksFor) {
  Policy policy = hard_below(200_MiB);
  policy.fastest_fill = (1000_MiB).count;
  Story story(policy);
  story.pod("hog", 2_GiB);
  story.step(0, GetParam().available);
  ASSERT_EQ(story.decided(), Lines{"kill hog"});
  EXPECT_EQ(story.verdict.next_check, at_ms(5)) << "whether the signal was sent";
  story.step(5, GetParam().available);
  EXPECT_EQ(story.verdict.next_check, at_ms(5) + GetParam().wait);
}

TEST(CheckSchedule, MemoryLeftIsTheDistanceToTheNearestMemoryThreshold) {
  Policy policy = hard_below(200_MiB);
  policy.thresholds.push_back(below(Signal::kMemoryAvailable, (500_MiB).count));
  policy.thresholds.push_back(below(Signal::kAllocatableMemoryAvailable, (100_MiB).count));
  policy.thresholds.push_back(below(Signal::kPidAvailable, 1000));
  Story story(policy);
  const auto left = [&] { return judge_eviction::memory_left(story.policy, story.verdict); };
  story.step(0, {{Signal::kMemoryAvailable, (900_MiB).count, (4_GiB).count},
                 {Signal::kPidAvailable, 1001, 32'768}});
  EXPECT_EQ(left(), 400_MiB);
  story.step(1, {{Signal::kMemoryAvailable, (400_MiB).count, (4_GiB).count},
                 {Signal::kAllocatableMemoryAvailable, (150_MiB).count, (2_GiB).count}});
  EXPECT_EQ(left(), 50_MiB);
  story.step(2, {{Signal::kMemoryAvailable, (200_MiB).count, (4_GiB).count},
                 {Signal::kAllocatableMemoryAvailable, (100_MiB).count, (2_GiB).count}});
  EXPECT_EQ(left(), std::nullopt) << "there is none ahead";
}

TEST(CheckSchedule, WithAGuardTheLoopNeedNotPollMemory) {
  Policy policy = hard_below(200_MiB);
  policy.fastest_fill = std::int64_t{1} << 30;
  Story story(policy);
  story.step(0, 712_MiB);
  EXPECT_EQ(story.verdict.next_check, at_ms(500));
  EXPECT_EQ(story.verdict.next_check_guarded, at_ms(1000)) << "the ceiling";
  story.step(500, 400_MiB);
  EXPECT_LT(story.verdict.next_check, at_ms(750));
  EXPECT_EQ(story.verdict.next_check_guarded, at_ms(1500)) << "however near, while it is not met";
  story.step(1000, 199_MiB);
  EXPECT_EQ(story.verdict.next_check_guarded, story.verdict.next_check)
      << "it is met: looked after";

  policy.thresholds = {below(Signal::kAllocatableMemoryAvailable, (100_MiB).count)};
  Story of_pods(policy);
  of_pods.step(0, {{Signal::kAllocatableMemoryAvailable, (110_MiB).count, (2_GiB).count}});
  EXPECT_LT(of_pods.verdict.next_check_guarded, at_ms(20)) << "not what a guard of the node sees";
}

TEST(FailsafeRanking, HasTheFirstEvictablePodsOfTheRanking) {
  Story story(hard_below(200_MiB));
  std::minstd_rand dice(7);
  for (int i = 0; i < 60; ++i) {
    const auto pod =
        story.pod("p" + std::to_string(i), Bytes{static_cast<std::int64_t>(dice() % 900) << 20},
                  Bytes{static_cast<std::int64_t>(dice() % 3) << 28}, static_cast<int>(dice() % 3));
    story.reading(pod).critical = dice() % 5 == 0;
    if (dice() % 5 == 0) story.record(pod).populated = 0;
  }
  const Snapshot snapshot = story.snapshot(0, 1_GiB);
  std::vector<Candidate> all;
  for (std::uint32_t i = 0; i < snapshot.pods.size(); ++i) {
    if (snapshot.pods[i].critical || snapshot.pods[i].record->populated == 0) continue;
    all.push_back(candidate_for(Signal::kMemoryAvailable, snapshot.images, snapshot.pods[i]));
    all.back().pod = i;
  }
  rank(Signal::kMemoryAvailable, all);
  for (const std::size_t most : {1, 16, 100}) {
    const auto list =
        judge_eviction::rank_for_failsafe(story.policy, snapshot, story.history, most);
    ASSERT_EQ(list.size(), std::min(most, all.size()));
    for (std::size_t i = 0; i < list.size(); ++i)
      EXPECT_EQ(list[i].cgroup, snapshot.pods[all[i].pod].cgroup) << i << " of " << most;
  }
}

TEST(Forecast, PredictsTheTimeToTheThreshold) {
  Story story(hard_below(200_MiB));
  for (int i = 0; i <= 100; ++i)
    story.step(i * 100, Bytes{(3_GiB).count - i * (10_MiB).count});  // 100 MiB/s
  const auto left = story.verdict.thresholds[0].time_to;
  ASSERT_TRUE(left);
  const double expected =
      static_cast<double>((3_GiB).count - 1000 * (1_MiB).count - (200_MiB).count) /
      static_cast<double>((100_MiB).count);
  EXPECT_NEAR(std::chrono::duration<double>(*left).count(), expected, expected * 0.01);
}

TEST(Forecast, HasNoPredictionWhileMemoryRecovers) {
  Story story(hard_below(200_MiB));
  story.step(0, 1_GiB);
  story.step(100, 2_GiB);
  EXPECT_FALSE(story.verdict.thresholds[0].time_to);
}

TEST(Policy, AChangeKeepsTheHistoryOfUnchangedThresholds) {
  Story story(soft_and_hard());
  story.step(0, 400_MiB);
  Policy next = soft_and_hard();
  next.thresholds[0] = memory_below(100_MiB);
  const History carried = carry_over(story.policy, story.history, next);
  EXPECT_FALSE(carried.thresholds[0].first_observed);
  EXPECT_EQ(carried.thresholds[1].first_observed, at_ms(0));
}

Bytes some_bytes(std::mt19937& random) {
  return Bytes{static_cast<std::int64_t>(random() % (1U << 30))};
}

// Whatever happens: a protected pod is never chosen, a missing reading never evicts, and a decision
// names its reason.
TEST(Property, HoldsOnRandomWalks) {
  std::mt19937 random(1);
  for (int walk = 0; walk < 200; ++walk) {
    Story story(soft_and_hard());
    const auto pods = 1 + random() % 8;
    for (unsigned i = 0; i < pods; ++i) {
      const auto index = story.pod("p" + std::to_string(i), some_bytes(random), some_bytes(random),
                                   static_cast<int>(random() % 3));
      story.reading(index).critical = random() % 3 == 0;
      if (random() % 4 == 0) story.record(index).valid = 0;
    }
    std::int64_t ms = 0;
    for (int i = 0; i < 50; ++i) {
      ms += static_cast<std::int64_t>(random() % 20'000);
      const bool missing = random() % 4 == 0;
      const auto available = missing ? std::nullopt : std::optional(some_bytes(random));
      const bool had_victims = !story.history.victims.empty();
      story.step(ms, available, static_cast<Outcome::Result>(random() % 3));
      for (const Decision& decision : story.verdict.decisions) {
        if (missing) {
          EXPECT_TRUE(had_victims) << "only a granted grace runs out in the dark";
        }
        EXPECT_LT(decision.reason.available, decision.reason.threshold);
        EXPECT_NE(decision.reason.sampled_at, Instant{});
        for (std::size_t p = 0; p < pods; ++p)
          if (story.reading(p).cgroup == decision.cgroup) {
            EXPECT_FALSE(story.reading(p).critical);
          }
      }
    }
  }
}

}  // namespace
}  // namespace headroom
