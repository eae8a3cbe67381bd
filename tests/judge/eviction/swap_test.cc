// SPDX-License-Identifier: Apache-2.0
// memory.available with swap: the rule of <headroom/swap_room.h> as tables, then nodes walked
// through stepped instants.
#include "judge/eviction/next_check.h"
#include "judge/eviction/threshold/swap_aware.h"
#include "support/story.h"

#include <gtest/gtest.h>

namespace headroom {
namespace {

using namespace test;
using namespace judge_eviction;
using Lines = std::vector<std::string>;
const Lines kNothing;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

// Bytes that are given in MiB.
SwapReading::Space space(std::int64_t total, std::int64_t free) {
  return {.total = total * kMiB, .free = free * kMiB};
}
SwapReading::Compressed pool(std::int64_t stored, std::int64_t memory, std::int64_t memory_left) {
  return {.stored = stored * kMiB, .memory = memory * kMiB, .memory_left = memory_left * kMiB};
}

struct RoomCase {
  const char* name;
  SwapReading reading;
  std::int64_t gain;       // MiB, rounded down
  std::int64_t available;  // MiB; the kubelet's value is 1000
  SwapRoom::Bound bound;
};

TEST(SwapRoom, ByWhatSwapGainsAndCosts) {
  using Bound = SwapRoom::Bound;
  const auto with_memory = [](std::int64_t mib, SwapReading reading) {
    reading.mem_available = mib * kMiB;
    return reading;
  };
  const RoomCase cases[] = {
      {"disk_gains_all_that_is_free", with_memory(40, {.disk = space(512, 300)}), 300, 340,
       Bound::kRoom},
      {"full_disk_gains_nothing", with_memory(40, {.disk = space(512, 0)}), 0, 40, Bound::kRoom},
      {"never_above_the_kubelets_value", with_memory(900, {.disk = space(512, 512)}), 512, 1000,
       Bound::kKubelet},
      // Nothing is stored yet: one half.
      {"empty_zram", with_memory(40, {.zram = space(512, 512), .zram_pool = pool(0, 0, 512)}), 256,
       296, Bound::kRoom},
      // (60 + 8) / (184 + 16) = 0.34 of 328 MiB is taken.
      {"zram_of_a_quarter_compressed_well",
       with_memory(40, {.zram = space(512, 328), .zram_pool = pool(184, 60, 328)}), 216, 256,
       Bound::kRoom},
      {"zram_of_a_half",
       with_memory(40, {.zram = space(1024, 840), .zram_pool = pool(184, 60, 840)}), 554, 594,
       Bound::kRoom},
      {"zram_as_large_as_memory",
       with_memory(40, {.zram = space(2048, 1864), .zram_pool = pool(184, 60, 1864)}), 1230, 1000,
       Bound::kKubelet},
      // (2000 + 8) / (1984 + 16), more than all: a free page of zram gains nothing.
      {"incompressible_pages",
       with_memory(40, {.zram = space(4096, 2112), .zram_pool = pool(1984, 2000, 2112)}), 0, 40,
       Bound::kRoom},
      // 34 MiB more of memory hold 100 MiB, which gain nearly 66.
      {"zram_with_a_memory_limit",
       with_memory(40, {.zram = space(512, 328), .zram_pool = pool(184, 60, 34)}), 65, 105,
       Bound::kRoom},
      {"zram_at_its_memory_limit",
       with_memory(40, {.zram = space(512, 328), .zram_pool = pool(184, 60, 0)}), 0, 40,
       Bound::kRoom},
      {"disk_and_zram",
       with_memory(
           40, {.disk = space(100, 100), .zram = space(512, 512), .zram_pool = pool(0, 0, 512)}),
       356, 396, Bound::kRoom},
      // The pool grows by 100 MiB before pages go to the disk.
      {"zswap_takes_memory_first",
       with_memory(40, {.disk = space(1024, 500), .zswap = pool(184, 60, 100)}), 400, 440,
       Bound::kRoom},
      // All that is free would be held in 0.34 of it.
      {"zswap_that_holds_all",
       with_memory(40, {.disk = space(512, 100), .zswap = pool(184, 60, 400)}), 66, 106,
       Bound::kRoom},
      {"full_zswap", with_memory(40, {.disk = space(1024, 500), .zswap = pool(184, 60, 0)}), 500,
       540, Bound::kRoom},
  };
  for (const RoomCase& c : cases) {
    const SwapRoom room = swap_room(c.reading, 1000 * kMiB, advance({}, c.reading));
    EXPECT_EQ(room.gain / kMiB, c.gain) << c.name;
    EXPECT_EQ(room.available / kMiB, c.available) << c.name;
    EXPECT_EQ(room.bound, c.bound) << c.name;
    EXPECT_EQ(room.filling, 0) << c.name << ": one reading is no rate";
  }
}

TEST(SwapRoom, SaysWhereTheMemoryIs) {
  const SwapReading reading{.resident = 700 * kMiB,
                            .disk = space(1024, 724),
                            .zram = space(512, 312),
                            .zram_pool = pool(200, 70, 312),
                            .incompressible = 8 * kMiB,
                            .zswap = pool(100, 40, 10)};
  const SwapRoom room = swap_room(reading, 0, advance({}, reading));
  EXPECT_EQ(room.resident / kMiB, 700);
  EXPECT_EQ(room.compressed / kMiB, 300);
  EXPECT_EQ(room.compressed_size / kMiB, 110);
  EXPECT_EQ(room.incompressible / kMiB, 8);
  EXPECT_EQ(room.on_disk / kMiB, 200) << "pages in zswap keep their place on the disk";
}

// What zram took last is random, after much that was zero.
TEST(SwapRoom, TheLatestPagesCountWhereTheyCompressWorse) {
  SwapReading reading{.zram = space(1024, 768), .zram_pool = pool(256, 16, 768)};
  SwapHistory history = advance({}, reading);
  EXPECT_GT(swap_room(reading, 4096 * kMiB, history).gain / kMiB, 680);
  reading.zram = space(1024, 736);
  reading.zram_pool = pool(288, 48, 736);
  history = advance(history, reading);
  EXPECT_EQ(swap_room(reading, 4096 * kMiB, history).gain, 0);
  // Its owner is gone: what is left compressed well.
  reading.zram = space(1024, 768);
  reading.zram_pool = pool(256, 16, 768);
  history = advance(history, reading);
  EXPECT_GT(swap_room(reading, 4096 * kMiB, history).gain / kMiB, 680);
}

// --- a node over time ---------------------------------------------------------------------------

Policy default_threshold(bool swap_aware = true) {
  Policy policy;
  policy.thresholds = {memory_below(100_MiB)};
  policy.mode = Mode::kEnforce;
  policy.swap_aware = swap_aware;
  return policy;
}

// A reading every 100 ms. The kubelet's value is 1 GiB all the time: the kernel swaps before it is
// low.
class SwapNode : public ::testing::Test {
 protected:
  explicit SwapNode(bool swap_aware = true) : story(default_threshold(swap_aware)) {
    story.pod("hog", 512_MiB);
    story.pod("web", 256_MiB);
    story.swap = SwapReading{.mem_available = 60 * kMiB,
                             .cache_in_use = 50 * kMiB,
                             .disk = space(1024, 1024),
                             .refaults = 1000,
                             .reclaimed = 1000,
                             .stalled_micros = 1000,
                             .pods_stalled_micros = 1000};
  }
  Lines step() {
    story.step(ms += 100, 1_GiB);
    return story.decided();
  }
  // Each second: MiB that go to swap, pages that come back and that are reclaimed, and the share of
  // the time in which all tasks stood still. The first decision, or nothing.
  Lines run(int seconds, std::int64_t filled, std::uint64_t refaults, std::uint64_t reclaimed,
            double stalled) {
    for (int i = 0; i < 10 * seconds; ++i) {
      SwapReading& swap = *story.swap;
      swap.disk.free = std::max<std::int64_t>(swap.disk.free - filled * kMiB / 10, 0);
      *swap.refaults += refaults / 10;
      *swap.reclaimed += reclaimed / 10;
      *swap.stalled_micros += static_cast<std::uint64_t>(stalled * 1e5);
      if (const Lines decided = step(); !decided.empty()) return decided;
    }
    return {};
  }
  const SwapRoom& room() const { return *story.verdict.swap_room; }

  Story story;
  std::int64_t ms = 0;
};

TEST_F(SwapNode, ColdPagesThatStayInSwapEvictNoPod) {
  story.swap->disk.free = 200 * kMiB;
  EXPECT_EQ(run(600, 0, 0, 0, 0), kNothing);
  EXPECT_EQ(room().available / kMiB, 260);
}

TEST_F(SwapNode, SwapThatFillsSlowlyEvictsWhenItIsNearlyFull) {
  EXPECT_EQ(run(40, 20, 0, 6000, 0.02), kNothing) << "224 MiB of swap are left";
  EXPECT_EQ(run(20, 20, 0, 6000, 0.02), Lines{"kill hog"});
  EXPECT_GT(story.swap->disk.free / kMiB, 20) << "before swap is full";
}

TEST_F(SwapNode, SwapThatFillsQuicklyEvictsBeforeItIsFull) {
  EXPECT_EQ(run(10, 400, 0, 100'000, 0.1), Lines{"kill hog"});
  EXPECT_GT(story.swap->disk.free / kMiB, 200);
  EXPECT_GT(room().filling / kMiB, 100);
}

TEST_F(SwapNode, PagesThatComeBackAtOnceAreNotCold) {
  EXPECT_EQ(run(10, 0, 30'000, 40'000, 0.5), Lines{"kill hog"});
  EXPECT_EQ(room().bound, SwapRoom::Bound::kThrashing);
  EXPECT_EQ(room().gain, 0);
  EXPECT_EQ(room().available / kMiB, 10) << "less the page cache in use";
  EXPECT_EQ(story.history.swap.stalled, 0) << "counted afresh after an eviction";
}

TEST_F(SwapNode, RefaultsThatStallNoTaskEvictNoPod) {
  EXPECT_EQ(run(60, 0, 30'000, 40'000, 0.05), kNothing);
}

TEST_F(SwapNode, StallsInWhichFewPagesComeBackEvictNoPod) {
  EXPECT_EQ(run(60, 0, 1'000, 40'000, 0.5), kNothing);
}

// Another pod thrashes at its own limit: the node's reclaim takes nothing.
TEST_F(SwapNode, APodAtItsOwnLimitEvictsNoPod) {
  EXPECT_EQ(run(60, 0, 100'000, 0, 0.5), kNothing);
}

TEST_F(SwapNode, ADeviceThatDoesNotKeepUpIsNoRoom) {
  EXPECT_EQ(run(10, 5, 0, 1'000, 0.9), Lines{"kill hog"});
  EXPECT_EQ(room().bound, SwapRoom::Bound::kThrashing);
}

// Counted at each sweep, every second.
TEST_F(SwapNode, APodWithinItsRequestThatWaitsATenthOfItsTimeIsThrashing) {
  const auto run_with_waits = [&](int seconds, double share) -> Lines {
    for (int i = 0; i < seconds; ++i) {
      story.swap->pods_counted_at = at_ms(ms);
      *story.swap->pods_stalled_micros += static_cast<std::uint64_t>(share * 1e6);
      if (const Lines decided = run(1, 5, 500, 20'000, 0.02); !decided.empty()) return decided;
    }
    return {};
  };
  EXPECT_EQ(run_with_waits(60, 0.08), kNothing);
  EXPECT_NEAR(story.history.swap.pods_stalled, 0.08, 0.001);
  EXPECT_EQ(run_with_waits(1, 0.9), Lines{"kill hog"});
  EXPECT_EQ(room().bound, SwapRoom::Bound::kThrashing);
  EXPECT_EQ(room().gain, 0);
  EXPECT_EQ(story.history.swap.pods_stalled, 0) << "counted afresh after an eviction";
}

TEST_F(SwapNode, WaitsOfPodsThatAreNotObservedAnyMoreAreForgotten) {
  step();
  story.history.swap.pods_stalled = 0.5;
  story.swap->mem_available = 400 * kMiB;
  EXPECT_EQ(step(), kNothing) << "memory is left";
  EXPECT_EQ(story.history.swap.pods_stalled, 0.5);
  story.swap->mem_available = 60 * kMiB;
  story.swap->pods_stalled_micros.reset();
  EXPECT_EQ(step(), kNothing);
  EXPECT_EQ(story.history.swap.pods_stalled, 0);
}

TEST_F(SwapNode, ThePodsAreLookedAtOftenWhileSwapFillsAndMemoryIsShort) {
  run(3, 50, 0, 20'000, 0.02);
  story.swap->pods_counted_at = at_ms(ms);
  EXPECT_EQ(step(), kNothing);
  EXPECT_LE(story.verdict.next_check, story.swap->pods_counted_at + std::chrono::milliseconds(250));
  Snapshot snapshot = story.snapshot(ms + 100, 1_GiB);
  snapshot.cgroups.reset();
  Verdict verdict;
  const auto needs_cgroups = [&](std::int64_t at, const SwapReading& swap) {
    snapshot.at = at_ms(at);
    snapshot.swap = swap;
    snapshot.swap->at = snapshot.at;
    judge(story.policy, snapshot, story.history, verdict);
    return verdict.needs_cgroups;
  };
  SwapReading swap = *story.swap;
  EXPECT_FALSE(needs_cgroups(ms + 100, swap)) << "they were looked at a moment ago";
  EXPECT_TRUE(needs_cgroups(ms + 200, swap));
  swap.mem_available = 400 * kMiB;
  EXPECT_FALSE(needs_cgroups(ms + 200, swap)) << "memory is left";
  swap = *story.swap;
  swap.pods_stalled_micros.reset();
  EXPECT_FALSE(needs_cgroups(ms + 200, swap)) << "waits are not observed";
  story.history.swap.fill_rate = 0;
  EXPECT_FALSE(needs_cgroups(ms + 200, *story.swap)) << "swap does not fill";
}

TEST_F(SwapNode, ThrashingWhileMemoryIsLeftEvictsNoPod) {
  story.swap->mem_available = 400 * kMiB;
  EXPECT_EQ(run(60, 0, 30'000, 40'000, 0.9), kNothing);
}

TEST_F(SwapNode, UnknownCountersNeverThrash) {
  story.swap->refaults.reset();
  story.swap->reclaimed.reset();
  story.swap->stalled_micros.reset();
  story.swap->pods_stalled_micros.reset();
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(step(), kNothing);
}

TEST_F(SwapNode, ADeviceThatGoesIsNoRateOfFilling) {
  run(2, 0, 0, 0, 0);
  story.swap->disk = space(256, 256);
  EXPECT_EQ(step(), kNothing);
  EXPECT_EQ(room().filling, 0);
}

// The pod that swapped most is furthest over its request, and both come back when it ends.
TEST_F(SwapNode, RankingCountsWhatAPodSwapped) {
  story.record(1).swap_usage = 600 * kMiB;
  story.record(1).anon = 200 * kMiB;
  story.swap->disk.free = 0;
  EXPECT_EQ(step(), Lines{"kill web"});
  const RankInfo& rank = story.verdict.decisions.front().rank_info;
  EXPECT_EQ(*rank.usage / kMiB, 856);
  EXPECT_EQ(*rank.predicted / kMiB, 800);
}

TEST_F(SwapNode, WithoutSwapTheValueIsTheKubelets) {
  story.swap.reset();
  story.record(1).swap_usage = 600 * kMiB;
  story.step(0, 101_MiB);
  EXPECT_EQ(story.decided(), kNothing);
  EXPECT_FALSE(story.verdict.swap_room);
  story.step(100, 99_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill hog"});
}

// The guard of the kernel sees the working set alone, which no longer grows once pages are swapped.
TEST_F(SwapNode, TheGuardReplacesChecksOnlyWhileTheKubeletsValueDecides) {
  story.swap->disk = space(4096, 4096);
  story.step(0, 3_GiB);
  EXPECT_EQ(room().bound, SwapRoom::Bound::kKubelet);
  EXPECT_GT(story.verdict.next_check_guarded, story.verdict.next_check);
  EXPECT_EQ(memory_left(story.policy, story.verdict), 30_MiB) << "half of what is not yet swapped";
  story.swap->disk.free = 2500 * kMiB;
  story.step(60'000, 3_GiB);
  EXPECT_EQ(room().bound, SwapRoom::Bound::kRoom);
  EXPECT_EQ(story.verdict.next_check_guarded, story.verdict.next_check);
}

// headroom.thrashAware: the reading of a node without swap.
class NoSwapNode : public SwapNode {
 protected:
  NoSwapNode() { story.swap->disk = {}; }
};

TEST_F(NoSwapNode, TheValueIsTheKubeletsUnlessItThrashes) {
  story.swap->mem_available = 10 * kMiB;
  EXPECT_EQ(run(60, 0, 30'000, 40'000, 0.05), kNothing) << "refaults that stall no task";
  EXPECT_EQ(room().available, room().kubelet);
  EXPECT_EQ(room().bound, SwapRoom::Bound::kKubelet);
  EXPECT_TRUE(room().in_force);
}

TEST_F(NoSwapNode, CacheThatIsReadBackAtOnceEvicts) {
  EXPECT_EQ(run(10, 0, 30'000, 40'000, 0.5), Lines{"kill hog"});
  EXPECT_EQ(room().bound, SwapRoom::Bound::kThrashing);
  EXPECT_EQ(room().available / kMiB, 10);
}

TEST_F(NoSwapNode, APodAtItsOwnLimitEvictsNoPod) {
  EXPECT_EQ(run(60, 0, 100'000, 0, 0.5), kNothing);
}

TEST_F(NoSwapNode, ThrashingWhileMemoryIsLeftEvictsNoPod) {
  story.swap->mem_available = 400 * kMiB;
  EXPECT_EQ(run(60, 0, 30'000, 40'000, 0.9), kNothing);
}

class SwapIgnored : public SwapNode {
 protected:
  SwapIgnored() : SwapNode(false) {}
};

TEST_F(SwapIgnored, TheKubeletsValueDecides) {
  story.swap->disk.free = 0;
  story.record(1).swap_usage = 600 * kMiB;
  EXPECT_EQ(run(5, 0, 30'000, 40'000, 0.9), kNothing);
  EXPECT_FALSE(room().in_force);
  EXPECT_EQ(room().available / kMiB, 10) << "shown all the same";
  story.step(ms += 100, 99_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill hog"}) << "what web swapped does not count";
}

}  // namespace
}  // namespace headroom
