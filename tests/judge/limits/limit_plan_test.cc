// SPDX-License-Identifier: Apache-2.0
// plan_limit() as a table, and cgroups that fill up, walked through stepped instants.
#include "judge/limits/limit_plan.h"

#include <algorithm>
#include <chrono>

#include <gtest/gtest.h>

namespace headroom::judge_limits {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr Instant kStart{100s};

LimitPolicy rescue(float ceiling = 1.5F) {
  return {.ceiling = ceiling};
}

LimitReading reading(std::int64_t usage, std::int64_t max, std::optional<std::int64_t> held) {
  return {.at = kStart,
          .usage = usage * kMiB,
          .max = max * kMiB,
          .held = held ? std::optional(*held * kMiB) : std::nullopt};
}

struct RaiseCase {
  const char* name;
  LimitReading reading;
  std::optional<std::int64_t> original;  // MiB
  std::int64_t room;                     // MiB
  std::optional<std::int64_t> to;        // MiB
};

TEST(LimitPlan, RaisesWhileTheNodeHasRoom) {
  const RaiseCase cases[] = {
      {"far_from_the_limit", reading(200, 256, 200), {}, 1000, {}},
      {"near_the_limit_by_a_sixteenth", reading(250, 256, 250), {}, 1000, 272},
      {"page_cache_is_not_needed", reading(250, 256, 100), {}, 1000, {}},
      {"page_cache_that_is_not_known", reading(250, 256, {}), {}, 1000, {}},
      {"from_a_raised_limit", reading(300, 304, 300), 256, 1000, 320},
      {"not_above_the_ceiling", reading(380, 380, 380), 256, 1000, 384},
      {"at_the_ceiling", reading(384, 384, 384), 256, 1000, {}},
      {"no_more_than_the_node_has", reading(250, 256, 250), {}, 8, 264},
      {"no_room_on_the_node", reading(250, 256, 250), {}, 0, {}},
      {"less_than_no_room", reading(250, 256, 250), {}, -50, {}},
  };
  for (const RaiseCase& each : cases) {
    LimitHistory history;
    if (each.original) history.original = *each.original * kMiB;
    const auto plan = plan_limit(rescue(), each.reading, history, each.room * kMiB);
    const auto expected = each.to ? std::optional(*each.to * kMiB) : std::nullopt;
    EXPECT_EQ(plan.raise_to, expected) << each.name;
    EXPECT_FALSE(plan.lower_to && plan.raise_to) << each.name;
  }
}

TEST(LimitPlan, WithoutARescueOrWithoutRoomKnownNothingIsRaised) {
  const auto full = reading(255, 256, 255);
  EXPECT_FALSE(plan_limit({.reclaim = true}, full, {}, 1000 * kMiB).raise_to);
  EXPECT_FALSE(plan_limit(rescue(), full, {}, std::nullopt).raise_to);
}

struct LowerCase {
  const char* name;
  std::int64_t usage, max, held;  // MiB
  Duration since_raised;
  std::int64_t room;               // MiB
  std::optional<std::int64_t> to;  // MiB; the original is 256
};

TEST(LimitPlan, LowersByWhatIsFree) {
  const LowerCase cases[] = {
      {"to_the_original", 100, 320, 100, 10s, 1000, 256},
      {"not_below_what_is_in_use", 250, 384, 250, 10s, 1000, 314},
      {"not_for_a_few_pages", 300, 370, 300, 10s, 1000, {}},
      {"not_at_once", 100, 320, 100, 1s, 1000, {}},
      {"at_once_if_the_node_is_short", 100, 320, 100, 1s, -1, 256},
  };
  for (const LowerCase& each : cases) {
    const LimitHistory history{.original = 256 * kMiB, .raised_at = kStart - each.since_raised};
    const auto plan =
        plan_limit(rescue(), reading(each.usage, each.max, each.held), history, each.room * kMiB);
    const auto expected = each.to ? std::optional(*each.to * kMiB) : std::nullopt;
    EXPECT_EQ(plan.lower_to, expected) << each.name;
  }
}

TEST(LimitPlan, ReclaimsPageCacheBeforeItLowers) {
  const LimitHistory history{.original = 256 * kMiB, .raised_at = kStart - 10s};
  const auto plan = plan_limit(rescue(), reading(300, 320, 100), history, 1000 * kMiB);
  EXPECT_FALSE(plan.lower_to);
  EXPECT_EQ(plan.reclaim / kMiB, 300 - 224);
  EXPECT_EQ(plan_limit(rescue(), reading(300, 320, 300), history, 1000 * kMiB).reclaim, 0)
      << "all of it is needed";
}

TEST(LimitPlan, TheBrakeIsOnNearALimitThatCanBeRaised) {
  EXPECT_EQ(plan_limit(rescue(), reading(240, 256, 240), {}, 1000 * kMiB).brake, Brake::kOn);
  EXPECT_EQ(plan_limit(rescue(), reading(200, 256, 200), {}, 1000 * kMiB).brake, Brake::kKeep);
  EXPECT_EQ(plan_limit(rescue(), reading(100, 256, 100), {}, 1000 * kMiB).brake, Brake::kOff);
  EXPECT_EQ(plan_limit(rescue(), reading(240, 256, 50), {}, 1000 * kMiB).brake, Brake::kOff)
      << "page cache";
  EXPECT_EQ(plan_limit(rescue(), reading(255, 256, 255), {}, 0).brake, Brake::kOff)
      << "a node without room: the limit is what the kernel makes of it";
  const LimitHistory raised{.original = 256 * kMiB};
  EXPECT_EQ(plan_limit(rescue(), reading(384, 384, 384), raised, 1000 * kMiB).brake, Brake::kOff)
      << "at the ceiling";
}

// A cgroup whose tasks charge memory at a rate; page cache can be reclaimed at once, anonymous
// memory cannot.
struct Filling {
  LimitPolicy policy;
  double rate;  // bytes per second
  bool cache = false;
  std::int64_t usage = 100 * kMiB, max = 256 * kMiB;
  std::uint64_t reclaimed = 0;
  LimitHistory history{};
  Instant at = kStart;
  int at_limit = 0;  // charges that memory.max refused

  void step(std::int64_t room) {
    const std::int64_t held = cache ? 20 * kMiB : usage;
    const LimitReading now{
        .at = at, .usage = usage, .max = max, .held = held, .reclaimed = reclaimed};
    history = advance(history, now);
    const LimitPlan plan = plan_limit(policy, now, history, room);
    if (plan.raise_to) {
      if (!history.original) history.original = max;
      history.raised_at = at;
      max = *plan.raise_to;
    }
    if (plan.reclaim > 0 && cache) {
      usage -= std::min(plan.reclaim, usage - held);
      reclaimed += static_cast<std::uint64_t>(plan.reclaim);
    }
    at += plan.next;
    usage += static_cast<std::int64_t>(rate * std::chrono::duration<double>(plan.next).count());
    if (usage < max) return;
    ++at_limit;
    usage = max;
  }
};

TEST(LimitPlan, BackgroundReclaimKeepsAReaderOffItsLimit) {
  for (const std::int64_t rate : {10, 50, 100, 200}) {
    Filling pod{
        .policy = {.reclaim = true}, .rate = static_cast<double>(rate * kMiB), .cache = true};
    for (int i = 0; i < 5000; ++i)
      pod.step(0);
    EXPECT_EQ(pod.at_limit, 0) << rate << " MiB/s";
    EXPECT_GT(pod.usage / kMiB, 190) << "no more than needed is taken, at " << rate << " MiB/s";
  }
}

TEST(LimitPlan, ARescueKeepsUpUntilTheCeiling) {
  for (const std::int64_t rate : {50, 200, 1000, 4000}) {
    Filling pod{.policy = rescue(), .rate = static_cast<double>(rate * kMiB)};
    while (pod.usage < 360 * kMiB && pod.at_limit == 0)
      pod.step(1000 * kMiB);
    EXPECT_EQ(pod.at_limit, 0) << rate << " MiB/s, at " << pod.usage / kMiB << " of "
                               << pod.max / kMiB;
    for (int i = 0; i < 100; ++i)
      pod.step(1000 * kMiB);
    EXPECT_EQ(pod.max / kMiB, 384) << "never above the ceiling";
  }
}

TEST(LimitPlan, ARescueTakesNoMoreThanTheNodeHas) {
  Filling pod{.policy = rescue(), .rate = 100.0 * kMiB};
  std::int64_t room = 40 * kMiB;
  for (int i = 0; i < 5000; ++i) {
    const std::int64_t before = pod.max;
    pod.step(room);
    room -= pod.max - before;
  }
  EXPECT_LE(pod.max / kMiB, 256 + 40);
  EXPECT_GE(room, 0);
}

TEST(LimitPlan, TheFillRateRisesAtOnceAndDecays) {
  LimitHistory history = advance({}, reading(100, 256, 100));
  LimitReading next = reading(110, 256, 110);
  next.at += 100ms;
  history = advance(history, next);
  EXPECT_NEAR(history.fill_rate / kMiB, 100, 1);
  next.at += 2s;
  history = advance(history, next);
  EXPECT_NEAR(history.fill_rate / kMiB, 37, 1);
  next.at += 100ms;
  next.reclaimed = 20 * kMiB;
  history = advance(history, next);
  EXPECT_NEAR(history.fill_rate / kMiB, 200, 1) << "what was reclaimed was filled again";
}

TEST(LimitPlan, AnIdlePodFarFromItsLimitIsRarelyRead) {
  EXPECT_EQ(plan_limit(rescue(), reading(10, 2048, {}), {}, std::nullopt).next, 100ms);
  EXPECT_LE(plan_limit(rescue(), reading(250, 256, 250), {}, std::nullopt).next, 1ms);
  EXPECT_GE(plan_limit(rescue(), reading(256, 256, 10), {}, std::nullopt).next, 10ms)
      << "full of page cache";
}

}  // namespace
}  // namespace headroom::judge_limits
