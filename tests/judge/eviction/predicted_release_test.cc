// SPDX-License-Identifier: Apache-2.0
// The fewest victims that will do: who is chosen together, who is waited for, who is passed over.
#include "judge/eviction/predicted_release.h"

#include "support/story.h"

#include <gtest/gtest.h>

namespace headroom::test {
namespace {

using judge_eviction::predicted_release;
using judge_eviction::predicted_time;
using Lines = std::vector<std::string>;
const Lines kNothing;

Policy short_below(Bytes value) {
  Policy policy;
  policy.mode = Mode::kEnforce;
  policy.thresholds = {memory_below(value)};
  return policy;
}

// Holds all of its working set in anonymous memory.
std::size_t anonymous(Story& story, const std::string& name, Bytes held, Bytes request = {}) {
  const std::size_t pod = story.pod(name, held, request);
  story.record(pod).anon = static_cast<std::uint64_t>(held.count);
  return pod;
}

std::size_t cache(Story& story, const std::string& name, Bytes held, Bytes anon) {
  const std::size_t pod = anonymous(story, name, held);
  story.record(pod).anon = static_cast<std::uint64_t>(anon.count);
  story.record(pod).file = static_cast<std::uint64_t>((held - anon).count);
  return pod;
}

PodReading reading(Story& story, std::size_t pod) {
  PodReading reading = story.reading(pod);
  reading.record = &story.record(pod);
  return reading;
}

TEST(PredictedRelease, IsTheMemoryOfProcessesOnly) {
  Story story(short_below(200_MiB));
  const auto pod = cache(story, "db", 1_GiB, 300_MiB);
  hr_record& record = story.record(pod);
  EXPECT_EQ(predicted_release(Signal::kMemoryAvailable, reading(story, pod)), (300_MiB).count);
  record.shmem = 100 << 20;
  record.kernel_stack = 1 << 20;
  record.pagetables = 2 << 20;
  EXPECT_EQ(predicted_release(Signal::kMemoryAvailable, reading(story, pod)), (403_MiB).count);
  record.shmem = 2ull << 30;
  EXPECT_EQ(predicted_release(Signal::kMemoryAvailable, reading(story, pod)), (1_GiB).count)
      << "never more than it uses";
  EXPECT_EQ(predicted_release(Signal::kMemoryPressure, reading(story, pod)), (1_GiB).count);
  EXPECT_EQ(predicted_release(Signal::kPidAvailable, reading(story, pod)), 1);
  EXPECT_EQ(predicted_release(Signal::kSwapAvailable, reading(story, pod)), 0);
  record.swap_usage = 5 << 20;
  EXPECT_EQ(predicted_release(Signal::kSwapAvailable, reading(story, pod)), (5_MiB).count);
  record.swap_usage = HR_UNKNOWN;
  EXPECT_EQ(predicted_release(Signal::kSwapAvailable, reading(story, pod)), std::nullopt);
  record.anon = HR_UNKNOWN;
  EXPECT_EQ(predicted_release(Signal::kMemoryAvailable, reading(story, pod)), std::nullopt);
}

TEST(PredictedTime, HugePagesAreFreedTwentyTimesAsFast) {
  Story story(short_below(200_MiB));
  const auto pod = anonymous(story, "hog", 2_GiB);
  const Duration small = predicted_time(reading(story, pod));
  EXPECT_GE(small, std::chrono::milliseconds(150));
  EXPECT_LE(small, std::chrono::milliseconds(180));
  story.record(pod).anon_thp = 2ull << 30;
  EXPECT_LE(predicted_time(reading(story, pod)), std::chrono::milliseconds(15));
}

TEST(Fewest, OneVictimIsChosenWhenItIsEnough) {
  Story story(short_below(200_MiB));
  anonymous(story, "hog", 1_GiB);
  anonymous(story, "web", 512_MiB);
  story.step(0, 100_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill hog"});
  EXPECT_EQ(story.verdict.decisions[0].rank_info.predicted, (1_GiB).count);
}

TEST(Fewest, ManySmallPodsAreChosenTogetherAndNoMoreThanNeeded) {
  Story story(short_below(200_MiB));
  for (int i = 0; i < 9; ++i)
    anonymous(story, "small-" + std::to_string(i), 30_MiB);
  story.step(0, 100_MiB);  // 100 MiB are missing: four of thirty
  EXPECT_EQ(story.decided(),
            (Lines{"kill small-0", "kill small-1", "kill small-2", "kill small-3"}));
}

TEST(Fewest, MinimumReclaimIsAddedToTheShortfall) {
  Policy policy = short_below(200_MiB);
  policy.thresholds[0].min_reclaim = Quantity::of((50_MiB).count, Quantity::Format::kBinarySI);
  Story story(policy);
  for (int i = 0; i < 9; ++i)
    anonymous(story, "small-" + std::to_string(i), 30_MiB);
  story.step(0, 180_MiB);  // 20 MiB and the 50
  EXPECT_EQ(story.decided(), (Lines{"kill small-0", "kill small-1", "kill small-2"}));
}

TEST(Fewest, TerminatingPodsAreWaitedForIfTheyAreEnough) {
  Story story(short_below(200_MiB));
  const auto hog = anonymous(story, "hog", 1_GiB);
  anonymous(story, "web", 512_MiB);
  story.step(0, 150_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill hog"});
  story.record(hog).anon = 300 << 20;  // the rest came back
  story.step(50, 10_MiB);              // and another pod took it, and more
  EXPECT_EQ(story.decided(), kNothing) << "the older reading of what is due counts";
  story.step(55, 10_MiB);
  EXPECT_EQ(story.decided(), kNothing) << "300 MiB are still to come, 190 are missing";
  story.record(hog).anon = 100 << 20;
  story.step(60, 10_MiB);
  EXPECT_EQ(story.decided(), kNothing);
  story.step(65, 10_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill web"}) << "100 MiB are to come, 190 are missing";
}

TEST(Fewest, NoSecondVictimWhileAReleaseIsUnknown) {
  Story story(short_below(200_MiB));
  story.pod("riddle", 30_MiB);
  anonymous(story, "web", 20_MiB);
  story.step(0, 10_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill riddle"});
  story.step(50, 10_MiB);
  EXPECT_EQ(story.decided(), kNothing);
}

TEST(Fewest, KillsEscalatedByAHardThresholdAreCounted) {
  Policy policy = short_below(200_MiB);
  policy.thresholds.push_back(memory_below(500_MiB, std::chrono::seconds(1)));
  policy.max_pod_grace = std::chrono::seconds(10);
  Story story(policy);
  anonymous(story, "hog", 1_GiB);
  anonymous(story, "web", 512_MiB);
  story.step(0, 400_MiB);
  story.step(1000, 400_MiB);
  EXPECT_EQ(story.decided(), Lines{"terminate hog"});
  story.step(1500, 100_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill hog"});
  story.step(1510, 100_MiB);
  EXPECT_EQ(story.decided(), kNothing);
}

TEST(NothingToFree, PageCacheIsNotFreedWithItsReader) {
  Story story(short_below(200_MiB));
  cache(story, "reader", 2_GiB, 8_MiB);
  anonymous(story, "web", 512_MiB);
  story.step(0, 100_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill web"});
  EXPECT_EQ(story.verdict.ranking[0].selection, Candidate::Selection::kNothingToFree);
}

TEST(NothingToFree, APodWithEnoughToReleaseIsNotFutile) {
  Story story(short_below(200_MiB));
  cache(story, "reader", 2_GiB, 8_MiB);
  anonymous(story, "web", 512_MiB);
  story.step(0, 195_MiB);  // 5 MiB will do, and it ranks first
  EXPECT_EQ(story.decided(), Lines{"kill reader"});
}

TEST(NothingToFree, TheOnlyCandidateIsChosenAnyway) {
  Story story(short_below(200_MiB));
  cache(story, "reader", 2_GiB, 8_MiB);
  story.step(0, 100_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill reader"});
}

// A tmpfs that others see cannot be distinguished from shared memory of its
// processes: the first death shows it.
TEST(NothingToFree, AKillThatFreedNothingIsFollowedByTheNext) {
  Story story(short_below(200_MiB));
  const auto hog = anonymous(story, "tmpfs-hog", 1_GiB);
  story.record(hog).anon = 1 << 20;
  story.record(hog).shmem = 1023 << 20;
  anonymous(story, "web", 512_MiB);
  story.step(0, 100_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill tmpfs-hog"});
  story.record(hog).populated = 0;
  story.record(hog).anon = 0;
  story.step(10, 100_MiB);
  ASSERT_EQ(story.verdict.eviction_ends.size(), 1u);
  EXPECT_EQ(story.verdict.eviction_ends[0].memory_returned, 0_MiB);
  story.step(15, 100_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill web"});
}

TEST(Tasks, AreCountedLikeMemory) {
  Policy policy;
  policy.mode = Mode::kEnforce;
  policy.thresholds = {below(Signal::kPidAvailable, 1000)};
  Story story(policy);
  for (int i = 0; i < 4; ++i)
    story.record(story.pod("forks-" + std::to_string(i), 8_MiB)).pids_current = 200;
  story.step(0, {{Signal::kPidAvailable, 650}});  // 350 are missing
  EXPECT_EQ(story.decided(), (Lines{"kill forks-0", "kill forks-1"}));
}

// --- memory that comes back after the last process ------------------------------------------

// Another process holds the victim's memory for a moment: it copies it, or reads /proc/PID/stat.
TEST(ReturnsLater, MemoryOfAnEmptyCgroupIsAwaited) {
  Story story(short_below(200_MiB));
  const auto hog = anonymous(story, "hog", 1_GiB);
  anonymous(story, "cron", 8_MiB);
  story.step(0, 180_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill hog"});
  story.record(hog).populated = 0;
  for (int i = 1; i <= 4; ++i) {
    story.step(i * 5, 170_MiB);
    EXPECT_EQ(story.decided(), kNothing) << i;
    EXPECT_TRUE(story.verdict.eviction_ends.empty()) << i;
  }
  story.record(hog).memory_usage = story.record(hog).anon = 0;
  story.step(25, 1200_MiB);
  ASSERT_EQ(story.verdict.eviction_ends.size(), 1u);
  EXPECT_EQ(story.verdict.eviction_ends[0].ended_at, at_ms(5));
  EXPECT_EQ(story.verdict.eviction_ends[0].memory_returned, 1_GiB);
  EXPECT_TRUE(story.history.victims.empty());
}

// Another flush of the statistics was interrupted: the root's and the pod's are as old as it is.
TEST(ReturnsLater, MemoryIsStillToComeWhileTheStatisticsLagBehind) {
  Story story(short_below(200_MiB));
  const auto hog = anonymous(story, "hog", 1_GiB);
  anonymous(story, "cron", 8_MiB);
  story.step(0, 180_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill hog"});
  story.record(hog).memory_usage = 10 << 20;
  for (int i = 1; i <= 4; ++i) {
    story.step(i * 5, 180_MiB);
    EXPECT_EQ(story.decided(), kNothing) << i;
  }
  story.record(hog).populated = 0;
  story.record(hog).memory_usage = 0;
  for (int i = 5; i <= 8; ++i) {
    story.step(i * 5, 180_MiB);
    EXPECT_EQ(story.decided(), kNothing) << i;
  }
  story.record(hog).anon = 0;
  story.step(45, 1200_MiB);
  EXPECT_EQ(story.verdict.eviction_ends.size(), 1u);
  EXPECT_EQ(story.decided(), kNothing);
}

TEST(ReturnsLater, MemoryIsAwaitedASecondWithoutProgress) {
  Story story(short_below(200_MiB));
  const auto hog = anonymous(story, "hog", 1_GiB);
  anonymous(story, "cron", 8_MiB);
  story.step(0, 180_MiB);
  story.record(hog).populated = 0;
  story.step(5, 180_MiB);
  story.record(hog).anon = 900 << 20;
  story.step(900, 180_MiB);
  story.step(1890, 180_MiB);
  EXPECT_EQ(story.decided(), kNothing);
  story.step(1900, 180_MiB);
  EXPECT_EQ(story.verdict.eviction_ends.size(), 1u);
  story.step(1905, 180_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill cron"});
}

TEST(ReturnsLater, MoreIsMissingThanWillComeBack) {
  Story story(short_below(200_MiB));
  const auto hog = anonymous(story, "hog", 1_GiB);
  anonymous(story, "second", 600_MiB);
  story.step(0, 180_MiB);
  story.record(hog).populated = 0;
  story.record(hog).anon = 50 << 20;
  story.step(5, 120_MiB);
  story.step(10, 120_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill second"}) << "50 MiB are to come, 80 are missing";
}

// Of a removed cgroup only the node's reading shows it.
TEST(ReturnsLater, MemoryOfARemovedCgroupIsAwaitedWhileTheSignalRises) {
  Story story(short_below(200_MiB));
  anonymous(story, "hog", 1_GiB);
  anonymous(story, "cron", 8_MiB);
  story.step(0, 100_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill hog"});
  story.remove_pod(0);
  for (int i = 1; i <= 5; ++i) {  // 4 KiB pages come back at 80 ms for each GiB
    story.step(i * 60, 100_MiB + Bytes{i * (10 << 20)});
    EXPECT_EQ(story.decided(), kNothing) << i;
  }
  story.step(600, 150_MiB);
  EXPECT_EQ(story.verdict.eviction_ends.size(), 1u);
  story.step(605, 150_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill cron"});
}

TEST(ReturnsLater, NothingIsAwaitedOfARemovedCgroupThatReturnedAll) {
  Story story(short_below(200_MiB));
  anonymous(story, "hog", 100_MiB);
  anonymous(story, "second", 50_MiB);
  story.step(0, 150_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill hog"});
  story.remove_pod(0);
  story.step(20, 250_MiB);
  EXPECT_EQ(story.verdict.eviction_ends.size(), 1u);
  story.step(25, 190_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill second"});
}

// The kernel frees page tables after an RCU grace period: 0.1 to 0.4 s after the last process on
// 7.2, of 400 MiB.
class PageTables : public testing::Test {
 protected:
  static Policy policy() {
    Policy policy;
    policy.mode = Mode::kEnforce;
    policy.thresholds = {below(Signal::kKernelMemAvailable, (50_MiB).count)};
    return policy;
  }
  PageTables() {
    hog = story.pod("hog", 400_MiB);
    story.record(hog).anon = 0;
    story.record(hog).pagetables = 395 << 20;
    anonymous(story, "large", 150_MiB);
    story.page_tables = 400_MiB;
    look(0, 40_MiB);
    EXPECT_EQ(story.decided(), Lines{"kill hog"});
    look(5, 45_MiB);
  }
  void look(std::int64_t ms, Bytes available) {
    story.step(ms, {{Signal::kKernelMemAvailable, available.count}});
  }

  Story story{policy()};
  std::size_t hog = 0;
};

TEST_F(PageTables, OfAnEmptyCgroupAreAwaited) {
  story.record(hog).populated = 0;
  for (int ms = 10; ms <= 900; ms += 10) {
    look(ms, 45_MiB);
    EXPECT_EQ(story.decided(), kNothing) << ms;
  }
  story.record(hog).pagetables = 0;
  look(910, 440_MiB);
  EXPECT_EQ(story.verdict.eviction_ends.size(), 1u);
}

TEST_F(PageTables, OfARemovedCgroupAreAwaitedWhileTheNodeHasThem) {
  story.remove_pod(hog);
  for (int ms = 10; ms <= 900; ms += 10) {
    look(ms, 45_MiB);
    EXPECT_EQ(story.decided(), kNothing) << ms;
  }
  // Others take what comes back meanwhile.
  story.page_tables = 150_MiB;
  for (int ms = 910; ms <= 1800; ms += 10) {
    look(ms, 45_MiB);
    EXPECT_EQ(story.decided(), kNothing) << ms;
  }
  story.page_tables = 6_MiB;
  look(1810, 45_MiB);
  EXPECT_EQ(story.verdict.eviction_ends.size(), 1u);
  look(1815, 45_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill large"});
}

TEST_F(PageTables, AreAwaitedASecondWithoutProgress) {
  story.remove_pod(hog);
  for (int ms = 10; ms <= 1000; ms += 10)
    look(ms, 45_MiB);
  EXPECT_TRUE(story.verdict.eviction_ends.empty());
  look(1060, 45_MiB);
  EXPECT_EQ(story.verdict.eviction_ends.size(), 1u);
}

TEST_F(PageTables, OfOthersAreNotAwaited) {
  story.record(hog).pagetables = 2 << 20;
  look(6, 45_MiB);
  story.remove_pod(hog);
  look(10, 45_MiB);
  look(60, 45_MiB);  // 80 ms for each GiB
  EXPECT_EQ(story.verdict.eviction_ends.size(), 1u);
}

// --- a victim whose cgroup never empties ----------------------------------------------------

// Two services with Restart= in one pod slice: the cgroup is populated all the time.
TEST(SurvivesItsKill, ARestartedServiceIsChosenAgainAndNotAnotherPod) {
  Story story(short_below(200_MiB));
  const auto hog = anonymous(story, "hog", 1_GiB);
  anonymous(story, "bystander", 300_MiB);
  const auto holds = [&](Bytes held) {
    story.record(hog).memory_usage = story.record(hog).anon =
        static_cast<std::uint64_t>(held.count);
  };
  story.step(0, 100_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill hog"});
  holds(4_MiB);  // the processes are gone, the services were started again
  for (int ms = 100; ms <= 3000; ms += 100)
    story.step(ms, 1_GiB);
  EXPECT_EQ(story.decided(), kNothing);
  holds(2_GiB);
  story.step(3'600'000, 50_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill hog"});
}

TEST(SurvivesItsKill, AServiceThatGrowsAtOnceIsKilledAgainBeforeTheDeadline) {
  Story story(short_below(200_MiB));
  const auto hog = anonymous(story, "hog", 1_GiB);
  anonymous(story, "bystander", 300_MiB);
  story.step(0, 100_MiB);
  story.record(hog).memory_usage = story.record(hog).anon = 4 << 20;
  story.step(5, 1100_MiB);
  story.record(hog).memory_usage = story.record(hog).anon = 1 << 30;
  story.step(400, 80_MiB);
  story.step(405, 80_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill hog"});
}

TEST(SurvivesItsKill, AStuckVictimIsKilledAgainWithBackOff) {
  Story story(short_below(200_MiB));
  anonymous(story, "stuck", 1_GiB);
  std::vector<int> kills;
  for (int second = 1; second <= 1100; ++second) {
    // Memory is short at every turn, and there is no other pod.
    story.step(std::int64_t{second} * 1000, 100_MiB);
    if (story.decided() == Lines{"kill stuck"}) kills.push_back(second);
  }
  EXPECT_EQ(kills, (std::vector<int>{1, 61, 181, 421, 721, 1021}));
}

TEST(SurvivesItsKill, AStuckVictimIsSkippedUntilItsBackOffIsOver) {
  Story story(short_below(200_MiB));
  anonymous(story, "stuck", 1_GiB);
  const auto next = anonymous(story, "next", 300_MiB);
  anonymous(story, "last", 300_MiB);
  story.step(0, 100_MiB);
  story.step(1000, 100_MiB);
  story.step(2001, 100_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill next"});
  story.remove_pod(next);
  story.step(3100, 400_MiB);
  story.step(59'000, 400_MiB);
  EXPECT_EQ(story.decided(), kNothing);
  story.step(61'000, 100_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill stuck"});
}

// --- tasks that are not reaped yet ----------------------------------------------------------

Policy tasks_below(std::int64_t value) {
  Policy policy;
  policy.mode = Mode::kEnforce;
  policy.thresholds = {below(Signal::kPidAvailable, value)};
  return policy;
}

std::size_t with_tasks(Story& story, const std::string& name, std::uint64_t tasks) {
  const std::size_t pod = story.pod(name, 8_MiB);
  story.record(pod).pids_current = tasks;
  return pod;
}

TEST(Tasks, ZombiesOfAnEmptyCgroupAreAwaited) {
  Story story(tasks_below(1000));
  const auto bomb = with_tasks(story, "bomb", 5000);
  with_tasks(story, "innocent", 1);
  story.step(0, {{Signal::kPidAvailable, 500}});
  EXPECT_EQ(story.decided(), Lines{"kill bomb"});
  story.record(bomb).populated = 0;
  for (int i = 1; i <= 8; ++i) {
    story.record(bomb).pids_current = 5000 - static_cast<std::uint64_t>(i) * 60;
    story.step(i * 700, {{Signal::kPidAvailable, 500 + i * 60}});
    EXPECT_EQ(story.decided(), kNothing) << i;
    EXPECT_TRUE(story.verdict.eviction_ends.empty()) << i;
  }
  story.step(5700, {{Signal::kPidAvailable, 994}});
  EXPECT_EQ(story.decided(), kNothing) << "6 below the threshold, 4520 still to come";
  story.record(bomb).pids_current = 0;
  story.step(5800, {{Signal::kPidAvailable, 5500}});
  ASSERT_EQ(story.verdict.eviction_ends.size(), 1u);
  EXPECT_TRUE(story.verdict.eviction_ends[0].gone);
  EXPECT_EQ(story.verdict.eviction_ends[0].ended_at, at_ms(700));
  EXPECT_TRUE(story.history.victims.empty());
}

// Init does not run, because of the bomb or of what its exit takes.
TEST(Tasks, ZombiesThatAreNotReapedAreAwaitedAsLongAsAnyReturn) {
  Story story(tasks_below(1000));
  const auto bomb = with_tasks(story, "bomb", 5000);
  with_tasks(story, "innocent", 900);
  story.step(0, {{Signal::kPidAvailable, 500}});
  EXPECT_EQ(story.decided(), Lines{"kill bomb"});
  story.record(bomb).populated = 0;
  for (int second = 1; second <= 30; ++second) {
    story.step(second * 1000, {{Signal::kPidAvailable, 500}});
    EXPECT_EQ(story.decided(), kNothing) << second;
    EXPECT_TRUE(story.verdict.eviction_ends.empty()) << second;
  }
  story.step(31'000, {{Signal::kPidAvailable, 500}});
  EXPECT_EQ(story.verdict.eviction_ends.size(), 1u) << "their parent may reap none";
  story.step(31'010, {{Signal::kPidAvailable, 500}});
  EXPECT_EQ(story.decided(), Lines{"kill innocent"});
}

// An exit for each process: a slow machine takes longer for thousands than a victim of memory may.
TEST(Tasks, ABombThatGetsOnWithExitingIsAwaitedForTwoMinutes) {
  Story story(tasks_below(1000));
  const auto bomb = with_tasks(story, "bomb", 5000);
  story.record(bomb).memory_usage = std::uint64_t{500} << 20;
  with_tasks(story, "innocent", 900);
  story.step(0, {{Signal::kPidAvailable, 500}});
  EXPECT_EQ(story.decided(), Lines{"kill bomb"});
  int second = 1;
  for (; second <= 90; ++second) {
    story.record(bomb).memory_usage -= std::uint64_t{2} << 20;
    story.step(second * 1000, {{Signal::kPidAvailable, 500}});
    EXPECT_EQ(story.decided(), kNothing) << second;
  }
  story.step(second * 1000, {{Signal::kPidAvailable, 500}});
  EXPECT_EQ(story.decided(), Lines{"kill bomb"}) << "it hangs, and may be taken again by now";
}

TEST(Tasks, AreAwaitedByTheNodesReadingWhenTheCgroupIsGone) {
  Story story(tasks_below(1000));
  with_tasks(story, "bomb", 5000);
  with_tasks(story, "innocent", 900);
  story.step(0, {{Signal::kPidAvailable, 500}});
  story.remove_pod(0);
  for (int i = 1; i <= 4; ++i) {
    story.step(i * 800, {{Signal::kPidAvailable, 500 + i * 20}});
    EXPECT_EQ(story.decided(), kNothing) << i;
  }
  story.step(4'300, {{Signal::kPidAvailable, 580}});
  EXPECT_EQ(story.verdict.eviction_ends.size(), 1u) << "none was reaped for a second";
  story.step(4'310, {{Signal::kPidAvailable, 580}});
  EXPECT_EQ(story.decided(), Lines{"kill innocent"});
}

TEST(Tasks, APodThatForksFasterThanReapingIsKilled) {
  Story story(tasks_below(1000));
  const auto first = with_tasks(story, "first", 3000);
  const auto second = with_tasks(story, "second", 900);
  story.step(0, {{Signal::kPidAvailable, 500}});
  EXPECT_EQ(story.decided(), Lines{"kill first"});
  story.record(first).populated = 0;
  story.record(first).pids_current = 100;
  story.record(second).pids_current = 4000;
  story.step(10, {{Signal::kPidAvailable, 300}});
  story.step(20, {{Signal::kPidAvailable, 300}});
  EXPECT_EQ(story.decided(), Lines{"kill second"}) << "100 are to come, 700 are missing";
}

// --- for nothing ------------------------------------------------------------------------------

struct FutileCase {
  const char* name;
  Signal signal;
  std::int64_t missing;
  std::vector<std::int64_t> held;  // of that signal, pod by pod
  Lines decided;
};
class FutileTest : public testing::TestWithParam<FutileCase> {};
INSTANTIATE_TEST_SUITE_P(
    Signals, FutileTest,
    testing::Values(
        FutileCase{"one_task_of_hundreds", Signal::kPidAvailable, 500, {1, 1, 1}, {}},
        FutileCase{"one_task_of_six", Signal::kPidAvailable, 6, {1, 1, 1}, {}},
        FutileCase{
            "a_bomb_and_the_others", Signal::kPidAvailable, 500, {1, 400, 1}, {"kill pod-1"}},
        FutileCase{"many_small_ones",
                   Signal::kPidAvailable,
                   20,
                   {2, 2, 2, 2, 2, 2, 2, 2, 2, 2},
                   {"kill pod-0", "kill pod-1", "kill pod-2", "kill pod-3", "kill pod-4",
                    "kill pod-5", "kill pod-6", "kill pod-7", "kill pod-8", "kill pod-9"}},
        FutileCase{"no_swap", Signal::kSwapAvailable, 1 << 20, {0, 0}, {}},
        FutileCase{"one_with_swap", Signal::kSwapAvailable, 1 << 20, {0, 1 << 20}, {"kill pod-1"}},
        FutileCase{"two_with_swap",
                   Signal::kSwapAvailable,
                   2 << 20,
                   {1 << 20, 1 << 20},
                   {"kill pod-0", "kill pod-1"}},
        FutileCase{"no_files", Signal::kNodeFsAvailable, 1 << 30, {0, 4096}, {}},
        FutileCase{"a_disk_one_at_a_time",
                   Signal::kImageFsAvailable,
                   2 << 20,
                   {1 << 20, 1 << 20},
                   {"kill pod-0"}},
        FutileCase{"few_inodes", Signal::kNodeFsInodesFree, 10'000, {10, 3}, {}},
        FutileCase{"many_inodes", Signal::kNodeFsInodesFree, 10'000, {10, 30'000}, {"kill pod-1"}}),
    [](const auto& row) { return row.param.name; });
TEST_P(FutileTest, NoPodIsEvictedForNothing) {
  const FutileCase& row = GetParam();
  Policy policy;
  policy.mode = Mode::kEnforce;
  policy.thresholds = {below(row.signal, row.missing + 1000)};
  Story story(policy);
  for (std::size_t i = 0; i < row.held.size(); ++i) {
    const std::int64_t held = row.held[i];
    const std::size_t pod = story.pod("pod-" + std::to_string(i), 8_MiB);
    if (row.signal == Signal::kPidAvailable)
      story.record(pod).pids_current = static_cast<std::uint64_t>(held);
    else if (row.signal == Signal::kSwapAvailable)
      story.record(pod).swap_usage = static_cast<std::uint64_t>(held);
    else if (row.signal == Signal::kNodeFsInodesFree)
      story.uses_disk(pod, 1000, 4096_B, held);
    else
      story.uses_disk(pod, 1000, Bytes{held});
  }
  story.step(1000, {{row.signal, 1000}});
  EXPECT_EQ(story.decided(), row.decided);
}

}  // namespace
}  // namespace headroom::test
