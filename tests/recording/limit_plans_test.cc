// SPDX-License-Identifier: Apache-2.0
// Plans for cgroups near their own limits, recorded and made once more.
#include "ctl/common/commands.h"
#include "recording/replayed.h"
#include "recording/replayer.h"
#include "support/story.h"

#include <chrono>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::recording {
namespace {

using namespace test;
using namespace std::chrono_literals;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

// As the daemon makes it: `held` MiB of a limit of 256, 900 ms after half of it.
PlannedLimit planned(std::int64_t held, std::optional<std::int64_t> room) {
  PlannedLimit made{.cgroup = CgroupId{7}};
  made.policy.ceiling = 1.5F;
  made.before.last =
      judge_limits::LimitReading{.at = at_ms(100), .usage = 128 * kMiB, .max = 256 * kMiB};
  made.reading = {.at = at_ms(1000), .usage = held * kMiB, .max = 256 * kMiB, .held = held * kMiB};
  made.room = room;
  made.plan = judge_limits::plan_limit(made.policy, made.reading,
                                       judge_limits::advance(made.before, made.reading), room);
  return made;
}

std::string recorded(const LimitPlans& made) {
  TapeWriter tape;
  std::string bytes;
  TapeWriter::header(bytes, {});
  tape.baseline(bytes, at_ms(0), Policy{}, {}, 0);
  tape.limit_plans(bytes, made);
  tape.end(bytes, at_ms(2000), 0);
  return bytes;
}

TEST(RecordedLimits, ArePlannedTheSameAgain) {
  const PlannedLimit raised = planned(250, 1000 * kMiB), full = planned(250, 0);
  ASSERT_TRUE(raised.plan.raise_to);
  ASSERT_FALSE(full.plan.raise_to);
  const std::string bytes =
      recorded({.at = at_ms(1500), .plans = {raised, full, planned(200, {})}});
  const Replayed result = replayed(bytes);
  EXPECT_EQ(result.limits.plans, 3u);
  EXPECT_TRUE(result.identical());
  EXPECT_TRUE(result.same_acts());
  EXPECT_NE(ctl::render_replay(result, 0, {})
                .find("3 plans for pods near their memory limits: the same\n"),
            std::string::npos);
}

TEST(RecordedLimits, ThatArePlannedOtherwiseAreSeen) {
  PlannedLimit raised = planned(250, 1000 * kMiB);
  raised.plan.raise_to = *raised.plan.raise_to + 1;
  PlannedLimit faster = planned(250, 1000 * kMiB);
  faster.before.last->usage = 64 * kMiB;  // it fills in the same time what it did not before
  const Replayed result = replayed(
      recorded({.at = at_ms(1500), .lost = 2, .plans = {raised, faster, planned(250, 0)}}));
  EXPECT_EQ(result.limits.different, 2u);
  EXPECT_EQ(result.limits.lost, 2u);
  EXPECT_FALSE(result.identical());
  EXPECT_FALSE(result.same_acts());
  const std::string text = ctl::render_replay(result, 0, {});
  EXPECT_NE(text.find("3 plans for pods near their memory limits: 2 differ; 2 lost\n"),
            std::string::npos);
  EXPECT_NE(text.find("different:"), std::string::npos);
  const auto json = nlohmann::json::parse(ctl::replay_json(result, 0));
  EXPECT_EQ(json["limit_plans"]["different"], 2);
  EXPECT_EQ(json["identical"], false);
}

TEST(RecordedLimits, AreNotPlannedByAnotherConfigurationOfEvictions) {
  const auto other = [](const Policy& policy, ImageStorage) { return policy; };
  EXPECT_EQ(replayed(recorded({.at = at_ms(1500), .plans = {planned(250, 0)}}), other).limits.plans,
            0u);
}

TEST(RecordedLimits, DamageIsAnErrorOrNoticedAndNeverMore) {
  const std::string whole = recorded(
      {.at = at_ms(1500), .plans = {planned(250, 1000 * kMiB), planned(200, {}), planned(255, 0)}});
  replay_damaged(whole);
}

}  // namespace
}  // namespace headroom::recording
