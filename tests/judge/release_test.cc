// SPDX-License-Identifier: Apache-2.0
// The fewest victims that will do: who is chosen together, who is waited for, who is passed over.
#include "judge/eviction/release.h"

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

TEST(PredictedRelease, IsWhatTheProcessesAloneHold) {
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
  EXPECT_EQ(predicted_release(Signal::kSwapAvailable, reading(story, pod)), std::nullopt);
  record.anon = HR_UNKNOWN;
  EXPECT_EQ(predicted_release(Signal::kMemoryAvailable, reading(story, pod)), std::nullopt);
}

TEST(PredictedTime, HugePagesComeBackTwentyTimesAsFast) {
  Story story(short_below(200_MiB));
  const auto pod = anonymous(story, "hog", 2_GiB);
  const Duration small = predicted_time(reading(story, pod));
  EXPECT_GE(small, std::chrono::milliseconds(150));
  EXPECT_LE(small, std::chrono::milliseconds(180));
  story.record(pod).anon_thp = 2ull << 30;
  EXPECT_LE(predicted_time(reading(story, pod)), std::chrono::milliseconds(15));
}

TEST(Fewest, OneIsEnoughWhenOneIsEnough) {
  Story story(short_below(200_MiB));
  anonymous(story, "hog", 1_GiB);
  anonymous(story, "web", 512_MiB);
  story.step(0, 100_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill hog"});
  EXPECT_EQ(story.verdict.decisions[0].standing.predicted, (1_GiB).count);
}

TEST(Fewest, ManySmallOnesDieTogetherAndNotOneTooMany) {
  Story story(short_below(200_MiB));
  for (int i = 0; i < 9; ++i)
    anonymous(story, "small-" + std::to_string(i), 30_MiB);
  story.step(0, 100_MiB);  // 100 MiB are missing: four of thirty
  EXPECT_EQ(story.decided(),
            (Lines{"kill small-0", "kill small-1", "kill small-2", "kill small-3"}));
}

TEST(Fewest, MinimumReclaimIsMissingAsWell) {
  Policy policy = short_below(200_MiB);
  policy.thresholds[0].min_reclaim = Quantity::of((50_MiB).count, Quantity::Format::kBinarySI);
  Story story(policy);
  for (int i = 0; i < 9; ++i)
    anonymous(story, "small-" + std::to_string(i), 30_MiB);
  story.step(0, 180_MiB);  // 20 MiB and the 50
  EXPECT_EQ(story.decided(), (Lines{"kill small-0", "kill small-1", "kill small-2"}));
}

TEST(Fewest, TheDyingAreWaitedForWhileTheyWillDo) {
  Story story(short_below(200_MiB));
  const auto hog = anonymous(story, "hog", 1_GiB);
  anonymous(story, "web", 512_MiB);
  story.step(0, 150_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill hog"});
  story.record(hog).anon = 300 << 20;  // the rest came back
  story.step(50, 10_MiB);              // and somebody else took it, and more
  EXPECT_EQ(story.decided(), kNothing) << "the older reading of what is due counts";
  story.step(55, 10_MiB);
  EXPECT_EQ(story.decided(), kNothing) << "300 MiB are still to come, 190 are missing";
  story.record(hog).anon = 100 << 20;
  story.step(60, 10_MiB);
  EXPECT_EQ(story.decided(), kNothing);
  story.step(65, 10_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill web"}) << "100 MiB are to come, 190 are missing";
}

TEST(Fewest, NobodyFollowsOneWhoseReleaseIsUnknown) {
  Story story(short_below(200_MiB));
  story.pod("riddle", 30_MiB);
  anonymous(story, "web", 20_MiB);
  story.step(0, 10_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill riddle"});
  story.step(50, 10_MiB);
  EXPECT_EQ(story.decided(), kNothing);
}

TEST(Fewest, WhatAHardThresholdHastensIsCounted) {
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

TEST(Futile, PageCacheDoesNotDieWithItsReader) {
  Story story(short_below(200_MiB));
  cache(story, "reader", 2_GiB, 8_MiB);
  anonymous(story, "web", 512_MiB);
  story.step(0, 100_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill web"});
  EXPECT_EQ(story.verdict.ranking[0].fate, Candidate::Fate::kFutile);
}

TEST(Futile, WhoHasEnoughForNowIsNot) {
  Story story(short_below(200_MiB));
  cache(story, "reader", 2_GiB, 8_MiB);
  anonymous(story, "web", 512_MiB);
  story.step(0, 195_MiB);  // 5 MiB will do, and he ranks first
  EXPECT_EQ(story.decided(), Lines{"kill reader"});
}

TEST(Futile, AloneHeIsChosenAllTheSame) {
  Story story(short_below(200_MiB));
  cache(story, "reader", 2_GiB, 8_MiB);
  story.step(0, 100_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill reader"});
}

// Nobody can tell a tmpfs others see from memory its processes share: the first death shows it.
TEST(Futile, ADeathThatGaveNothingBackIsNoticedAndTheNextIsChosen) {
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
  ASSERT_EQ(story.verdict.farewells.size(), 1u);
  EXPECT_EQ(story.verdict.farewells[0].memory_returned, 0_MiB);
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

}  // namespace
}  // namespace headroom::test
