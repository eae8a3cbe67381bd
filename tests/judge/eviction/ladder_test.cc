// SPDX-License-Identifier: Apache-2.0
// The ladder: cache first, then limits on best-effort pods, then evictions; and stuck pods.
#include "support/story.h"

#include <cerrno>
#include <optional>

#include <gtest/gtest.h>

namespace headroom {
namespace {

using namespace test;
using std::chrono::seconds;
using Lines = std::vector<std::string>;
const Lines kNothing;

// Of 4 GiB: killed below 200 MiB, cache is taken below 400, best-effort held below 300 or so.
Policy climbing() {
  Policy policy;
  policy.thresholds = {memory_below(200_MiB)};
  policy.mode = Mode::kEnforce;
  policy.ladder.reclaim_margin = 0.05F;
  policy.ladder.lower_high_margin = 0.025F;
  policy.ladder.lower_high_limit = seconds(30);
  return policy;
}

std::size_t pod(Story& story, const std::string& name, Bytes working_set, Bytes cache,
                QosClass qos = QosClass::kBestEffort) {
  const auto place = story.pod(name, working_set);
  auto described = std::make_shared<Pod>(*story.reading(place).pod);
  described->declared_qos = qos;
  story.reading(place).pod = described;
  hr_record& record = story.record(place);
  record.valid |= HR_MEMORY_LIMITS;
  record.memory_min = record.memory_low = 0;
  record.memory_high = record.memory_max = HR_NO_LIMIT;
  record.active_file = static_cast<std::uint64_t>(cache.count);
  record.anon = static_cast<std::uint64_t>((working_set - cache).count);
  return place;
}

const Decision& only(const Story& story) {
  EXPECT_EQ(story.verdict.decisions.size(), 1u);
  return story.verdict.decisions.at(0);
}

TEST(Ladder, NothingIsDoneByDefault) {
  Policy policy = climbing();
  policy.ladder = {};
  Story story(policy);
  pod(story, "cache", 1_GiB, 800_MiB);
  story.step(0, 201_MiB);
  EXPECT_EQ(story.decided(), kNothing);
}

TEST(Ladder, CacheIsReclaimedInStepsFromTheLargestPod) {
  Story story(climbing());
  pod(story, "small", 500_MiB, 100_MiB);
  pod(story, "cache", 1_GiB, 800_MiB);
  story.step(0, 405_MiB);
  EXPECT_EQ(story.decided(), kNothing) << "above the line";
  story.step(10, 390_MiB);
  ASSERT_EQ(story.decided(), Lines{"take cache of cache"});
  EXPECT_EQ(only(story).bytes, 64_MiB);
  story.step(20, 390_MiB);
  EXPECT_EQ(story.decided(), kNothing) << "one at a time";
  story.ended(Act::kReclaimCache, 30);
  story.step(40, 390_MiB);
  EXPECT_EQ(story.decided(), kNothing) << "a breath";
  story.step(60, 390_MiB);
  EXPECT_EQ(story.decided(), Lines{"take cache of cache"});
  story.ended(Act::kReclaimCache, 70);
  story.step(100, 450_MiB);
  EXPECT_EQ(story.decided(), kNothing) << "enough";
}

TEST(Ladder, ACgroupThatReleasedLessIsSkippedForLonger) {
  Story story(climbing());
  pod(story, "small", 500_MiB, 100_MiB);
  pod(story, "cache", 1_GiB, 800_MiB);
  story.step(0, 390_MiB);
  story.ended(Act::kReclaimCache, 10, EAGAIN);
  story.step(50, 390_MiB);
  EXPECT_EQ(story.decided(), Lines{"take cache of small"});
  story.ended(Act::kReclaimCache, 60, EAGAIN);
  story.step(100, 390_MiB);
  EXPECT_EQ(story.decided(), kNothing) << "no pod is left";
  story.step(31'000, 390_MiB);
  EXPECT_EQ(story.decided(), Lines{"take cache of cache"});
}

TEST(Ladder, ProtectedCacheStays) {
  struct Case {
    const char* name;
    std::uint64_t low;
    bool critical;
    std::optional<Bytes> taken;
  };
  const Case cases[] = {
      {"half_is_protected", 1ULL << 30, false, 24_MiB},
      {"all_is", 2ULL << 30, false, std::nullopt},
      {"without_end", HR_NO_LIMIT, false, std::nullopt},
      {"critical", 0, true, std::nullopt},
  };
  for (const Case& each : cases) {
    Story story(climbing());
    const auto cache = pod(story, "cache", 1_GiB + 24_MiB, 800_MiB);
    story.record(cache).memory_low = each.low;
    story.reading(cache).critical = each.critical;
    story.step(0, 390_MiB);
    if (!each.taken) {
      EXPECT_EQ(story.decided(), kNothing) << each.name;
      continue;
    }
    ASSERT_EQ(story.decided(), Lines{"take cache of cache"}) << each.name;
    EXPECT_EQ(only(story).bytes, each.taken) << each.name;
  }
}

TEST(Ladder, PodsWithUnknownLimitsAreSkipped) {
  Story story(climbing());
  const auto cache = pod(story, "cache", 1_GiB, 800_MiB);
  story.record(cache).valid &= ~static_cast<std::uint32_t>(HR_MEMORY_LIMITS);
  story.step(0, 250_MiB);
  EXPECT_EQ(story.decided(), kNothing);
}

TEST(Ladder, ALimitIsAMultipleOfEveryPageSize) {
  Story story(climbing());
  pod(story, "batch", 1_GiB + 1_B, {});
  story.step(0, 290_MiB);
  ASSERT_EQ(story.decided(), Lines{"squeeze batch"});
  EXPECT_EQ(only(story).bytes, 1_GiB + 64_KiB);
}

TEST(Ladder, BestEffortIsLimitedToItsUsageAndReleasedAfterwards) {
  Story story(climbing());
  const auto batch = pod(story, "batch", 1_GiB, {});
  pod(story, "web", 1_GiB, {}, QosClass::kBurstable);
  story.step(0, 290_MiB);
  ASSERT_EQ(story.decided(), Lines{"squeeze batch"});
  EXPECT_EQ(only(story).bytes, 1_GiB);
  story.ended(Act::kLowerMemoryHigh, 5);
  story.record(batch).memory_high = 1 << 30;
  story.step(1'000, 310_MiB);
  EXPECT_EQ(story.decided(), kNothing);
  story.step(10'999, 310_MiB);
  EXPECT_EQ(story.decided(), kNothing);
  story.step(11'000, 310_MiB);
  ASSERT_EQ(story.decided(), Lines{"restore batch"});
  EXPECT_EQ(only(story).bytes, std::nullopt) << "it had no limit";
  story.ended(Act::kRestoreMemoryHigh, 11'010);
  EXPECT_TRUE(story.history.ladder.held.empty());
}

TEST(Ladder, AMemoryHighOverrideAlwaysExpires) {
  Story story(climbing());
  pod(story, "batch", 1_GiB, {});
  story.step(0, 290_MiB);
  story.ended(Act::kLowerMemoryHigh, 5);
  story.step(29'999, 290_MiB);
  EXPECT_EQ(story.decided(), kNothing);
  story.step(30'000, 290_MiB);
  EXPECT_EQ(story.decided(), Lines{"restore batch"});
  story.ended(Act::kRestoreMemoryHigh, 30'010);
  story.step(30'020, 290_MiB);
  EXPECT_EQ(story.decided(), kNothing) << "and is not begun again at once";
  story.step(60'000, 290_MiB);
  EXPECT_EQ(story.decided(), Lines{"squeeze batch"});
}

TEST(Ladder, AMemoryHighOverrideExpiresDuringAShortageThatNoEvictionEnds) {
  Story story(climbing());
  const auto batch = pod(story, "batch", 1_GiB, {});
  story.step(0, 290_MiB);
  story.ended(Act::kLowerMemoryHigh, 5);
  story.reading(batch).critical = true;  // no candidate is left
  story.step(29'999, 150_MiB);
  EXPECT_EQ(story.decided(), kNothing);
  story.step(30'000, 150_MiB);
  EXPECT_EQ(story.decided(), Lines{"restore batch"});
}

TEST(Ladder, APodThatIsKilledKeepsItsMemoryHighUntilThen) {
  Story story(climbing());
  pod(story, "batch", 1_GiB, {});
  story.step(0, 290_MiB);
  story.ended(Act::kLowerMemoryHigh, 5);
  story.step(29'990, 150_MiB);
  ASSERT_EQ(story.decided(), Lines{"kill batch"});
  story.step(30'000, 150_MiB);
  EXPECT_EQ(story.decided(), kNothing);
}

// systemd would start its unit again with the limit that was set.
TEST(Ladder, TheMemoryHighOfAPodThatIsGoneIsRestoredAtOnce) {
  Story story(climbing());
  const auto batch = pod(story, "batch", 1_GiB, {});
  story.step(0, 290_MiB);
  story.ended(Act::kLowerMemoryHigh, 5);
  story.remove_pod(batch);
  story.step(1'000, 290_MiB);
  EXPECT_EQ(story.decided(), Lines{"restore batch"});
  story.ended(Act::kRestoreMemoryHigh, 1'010, ETIMEDOUT);
  story.step(6'010, 290_MiB);
  EXPECT_EQ(story.decided(), Lines{"restore batch"}) << "the bus was gone";
  story.ended(Act::kRestoreMemoryHigh, 6'020);
  EXPECT_TRUE(story.history.ladder.held.empty());
}

TEST(Ladder, AFailedRestoreIsRetried) {
  Story story(climbing());
  pod(story, "batch", 1_GiB, {});
  story.step(0, 290_MiB);
  story.ended(Act::kLowerMemoryHigh, 5);
  story.step(30'000, 290_MiB);
  story.ended(Act::kRestoreMemoryHigh, 30'010, ETIMEDOUT);
  story.step(31'000, 290_MiB);
  EXPECT_EQ(story.decided(), kNothing);
  story.step(35'010, 290_MiB);
  EXPECT_EQ(story.decided(), Lines{"restore batch"});
}

TEST(Ladder, AFailedLoweringIsNotRecorded) {
  Story story(climbing());
  pod(story, "batch", 1_GiB, {});
  story.step(0, 290_MiB);
  story.ended(Act::kLowerMemoryHigh, 5, EIO);
  EXPECT_TRUE(story.history.ladder.held.empty());
}

TEST(Ladder, WhenDisabledLimitsAreRestored) {
  Story story(climbing());
  pod(story, "batch", 1_GiB, {});
  story.step(0, 290_MiB);
  story.ended(Act::kLowerMemoryHigh, 5);
  story.policy.ladder = {};
  story.step(100, 290_MiB);
  EXPECT_EQ(story.decided(), Lines{"restore batch"});
}

TEST(Ladder, AtTheHardThresholdNoLadderStepIsDone) {
  Story story(climbing());
  pod(story, "hog", 2_GiB, {});
  pod(story, "cache", 1_GiB, 800_MiB);
  story.step(0, 199_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill hog"});
  story.step(5, 150_MiB);
  EXPECT_EQ(story.decided(), kNothing) << "while it dies neither";
}

TEST(Ladder, OnlyTheNodeIsReadUntilAStepIsDue) {
  Story story(climbing());
  pod(story, "cache", 1_GiB, 800_MiB);
  Verdict verdict;
  judge(story.policy, story.snapshot(0, 500_MiB, false), story.history, verdict);
  EXPECT_FALSE(verdict.needs_cgroups);
  judge(story.policy, story.snapshot(10, 390_MiB, false), story.history, verdict);
  EXPECT_TRUE(verdict.needs_cgroups);
}

TEST(Ladder, ObserveModeReportsItOncePerMinute) {
  Policy policy = climbing();
  policy.mode = Mode::kObserve;
  policy.ladder.lower_high_margin.reset();
  Story story(policy);
  pod(story, "cache", 1_GiB, 800_MiB);
  story.step(0, 390_MiB, Outcome::Result::kDryRun);
  EXPECT_EQ(story.decided(), Lines{"take cache of cache"});
  story.step(59'000, 390_MiB, Outcome::Result::kDryRun);
  EXPECT_EQ(story.decided(), kNothing);
  story.step(60'001, 390_MiB, Outcome::Result::kDryRun);
  EXPECT_EQ(story.decided(), Lines{"take cache of cache"});
}

// --- who is stuck ------------------------------------------------------------------------------

Policy unsticking(Duration raise_high_duration, bool evict) {
  Policy policy;
  policy.thresholds = {memory_below(200_MiB)};
  policy.mode = Mode::kEnforce;
  policy.ladder.stuck_duration = seconds(10);
  policy.ladder.raise_high_duration = raise_high_duration;
  policy.ladder.evict_stuck = evict;
  return policy;
}

// A pod with one container that has waited so long in all, at a limit of 500 MiB.
std::size_t limited_pod(Story& story) {
  const auto place = pod(story, "db", 500_MiB, {}, QosClass::kBurstable);
  PartReading& part = story.container(place, 500_MiB);
  part.high = 500_MiB;
  part.stalled = Duration(0);
  story.parts(place).stalled = Duration(0);
  return place;
}

// Each second some of it is spent waiting.
void waits(Story& story, std::size_t place, int from, int to, Duration each,
           Bytes available = 2_GiB) {
  for (int second = from; second < to; ++second) {
    *story.parts(place).parts[0].stalled += each;
    story.step(second * 1000, available);
    if (!story.verdict.decisions.empty()) return;
  }
}

TEST(Stuck, TheLimitIsRaisedThenThePodIsEvicted) {
  Story story(unsticking(seconds(60), true));
  const auto db = limited_pod(story);
  story.step(0, 2_GiB);
  waits(story, db, 1, 10, std::chrono::milliseconds(500));
  EXPECT_EQ(story.decided(), kNothing);
  waits(story, db, 10, 12, std::chrono::milliseconds(500));
  ASSERT_EQ(story.decided(), Lines{"relax db's container"});
  EXPECT_EQ(only(story).bytes, 750_MiB);
  EXPECT_EQ(only(story).reason.cause, Cause::kStuck);
  story.ended(Act::kRaiseMemoryHigh, 11'500);
  story.parts(db).parts[0].high = 750_MiB;
  story.parts(db).parts[0].usage = 750_MiB;
  waits(story, db, 12, 25, std::chrono::milliseconds(500));
  ASSERT_EQ(story.decided(), Lines{"kill db"}) << "stuck at the raised one too";
  EXPECT_EQ(only(story).reason.cause, Cause::kStuck);
  EXPECT_EQ(only(story).reason.threshold, (750_MiB).count);
}

// A fifth below memory.max, above which the kernel kills.
TEST(Stuck, TheRaisedLimitStaysBelowTheLimitAtWhichTheKernelKills) {
  Story story(unsticking(seconds(60), true));
  const auto db = limited_pod(story);
  story.parts(db).parts[0].max = 800_MiB;
  story.step(0, 2_GiB);
  waits(story, db, 1, 12, std::chrono::milliseconds(500));
  ASSERT_EQ(story.decided(), Lines{"relax db's container"});
  EXPECT_EQ(only(story).bytes, 640_MiB);
}

// The container has no memory.max; its pod has 100 MiB left below its own.
TEST(Stuck, TheRaisedLimitStaysBelowThatOfThePod) {
  Story story(unsticking(seconds(60), true));
  const auto db = limited_pod(story);
  story.record(db).memory_usage = std::uint64_t{900} << 20;
  story.record(db).memory_max = std::uint64_t{1100} << 20;
  story.step(0, 2_GiB);
  waits(story, db, 1, 12, std::chrono::milliseconds(500));
  ASSERT_EQ(story.decided(), Lines{"relax db's container"});
  EXPECT_EQ(only(story).bytes, 560_MiB);
}

TEST(Stuck, WhereTheLimitCannotBeRaisedThePodIsEvicted) {
  struct Case {
    std::optional<Bytes> max;
    Bytes available;
  };
  for (const bool evict : {true, false})
    for (const Case& each : {Case{.max = 600_MiB, .available = 2_GiB},
                             Case{.max = {}, .available = 449_MiB}}) {  // 250 MiB above it: 450
      Story story(unsticking(seconds(60), evict));
      const auto db = limited_pod(story);
      story.parts(db).parts[0].max = each.max;
      story.step(0, each.available);
      waits(story, db, 1, 30, std::chrono::milliseconds(500), each.available);
      EXPECT_EQ(story.decided(), evict ? Lines{"kill db"} : kNothing);
    }
}

TEST(Stuck, WhatMayBeTakenIsCountedFromWhatIsUsed) {
  Story story(unsticking(seconds(60), true));
  const auto db = limited_pod(story);
  story.step(0, 450_MiB);
  waits(story, db, 1, 12, std::chrono::milliseconds(500), 450_MiB);
  EXPECT_EQ(story.decided(), Lines{"relax db's container"});
}

TEST(Stuck, ARaisedLimitIsRestored) {
  Story story(unsticking(seconds(20), true));
  const auto db = limited_pod(story);
  story.step(0, 2_GiB);
  waits(story, db, 1, 12, std::chrono::milliseconds(500));
  ASSERT_EQ(story.decided(), Lines{"relax db's container"});
  story.ended(Act::kRaiseMemoryHigh, 10'500);
  story.parts(db).parts[0].high = 750_MiB;
  for (int second = 11; second < 30; ++second) {
    story.step(second * 1000, 2_GiB);
    EXPECT_EQ(story.decided(), kNothing) << second;
  }
  story.step(30'000, 2_GiB);
  ASSERT_EQ(story.decided(), Lines{"restore db's container"});
  EXPECT_EQ(only(story).bytes, 500_MiB);
}

TEST(Stuck, WithoutRaisingThePodIsEvictedAtOnce) {
  Story story(unsticking({}, true));
  const auto db = limited_pod(story);
  story.step(0, 2_GiB);
  waits(story, db, 1, 12, std::chrono::milliseconds(500));
  EXPECT_EQ(story.decided(), Lines{"kill db"});
}

TEST(Stuck, NoEvictionWherePolicyOnlyRaisesLimits) {
  Story story(unsticking(seconds(5), false));
  const auto db = limited_pod(story);
  story.step(0, 2_GiB);
  waits(story, db, 1, 12, std::chrono::milliseconds(500));
  ASSERT_EQ(story.decided(), Lines{"relax db's container"});
  story.ended(Act::kRaiseMemoryHigh, 11'500);
  waits(story, db, 12, 15, std::chrono::milliseconds(500));
  EXPECT_EQ(story.decided(), kNothing);
  waits(story, db, 15, 40, std::chrono::milliseconds(500));
  EXPECT_EQ(story.decided(), Lines{"restore db's container"});
  story.ended(Act::kRestoreMemoryHigh, 20'000);
  waits(story, db, 40, 80, std::chrono::milliseconds(500));
  EXPECT_EQ(story.decided(), kNothing);
}

TEST(Stuck, OccasionalWaitsAreNotStuck) {
  for (const auto each : {std::chrono::milliseconds(0), std::chrono::milliseconds(200)}) {
    Story story(unsticking({}, true));
    const auto db = limited_pod(story);
    story.step(0, 2_GiB);
    waits(story, db, 1, 60, each);
    EXPECT_EQ(story.decided(), kNothing) << each.count();
  }
}

TEST(Stuck, WithoutReadingsNoPodIsStuck) {
  Story story(unsticking({}, true));
  const auto db = limited_pod(story);
  story.parts(db).parts[0].stalled.reset();
  story.parts(db).stalled.reset();
  for (int second = 0; second < 60; ++second)
    story.step(second * 1000, 2_GiB);
  EXPECT_EQ(story.decided(), kNothing);
}

}  // namespace
}  // namespace headroom
