// SPDX-License-Identifier: Apache-2.0
// The kubelet's ten-second loop beside ours: how much later, which victim, and what needlessly.
#include "support/story.h"

#include <headroom/shadow.h>

#include <gtest/gtest.h>

namespace headroom {
namespace {

using namespace test;
using namespace std::chrono_literals;

Policy policy() {
  Policy policy;
  policy.thresholds = {memory_below(200_MiB), memory_below(500_MiB, 15s)};
  policy.mode = Mode::kEnforce;
  return policy;
}

class ShadowTest : public testing::Test {
 protected:
  const ShadowResult& step(std::int64_t ms, Bytes available) {
    const Snapshot now = story.snapshot(ms, available);
    story.step(ms, available);
    shadow(story.policy, now, story.verdict, state, shadow_result);
    return shadow_result;
  }
  Story story{policy()};
  ShadowState state;
  ShadowResult shadow_result;
};

TEST_F(ShadowTest, TheLeadOfAHardEvictionIsTheTimeToTheNextSync) {
  story.pod("hog", 2_GiB);
  step(1'000, 1_GiB);
  step(3'500, 100_MiB);
  ASSERT_EQ(shadow_result.predictions.size(), 1u);
  EXPECT_EQ(shadow_result.predictions[0].lead, 7'500ms);
  EXPECT_EQ(shadow_result.predictions[0].samples_age, 2'500ms);
  EXPECT_TRUE(shadow_result.predictions[0].same);
  EXPECT_FALSE(shadow_result.evicts);
}

TEST_F(ShadowTest, TheFirstTurnTakesSamples) {
  story.pod("hog", 2_GiB);
  step(1'000, 100_MiB);
  ASSERT_EQ(shadow_result.predictions.size(), 1u);
  EXPECT_EQ(shadow_result.predictions[0].samples_age, 0s);
  EXPECT_TRUE(shadow_result.predictions[0].same) << "by samples there are";
}

TEST_F(ShadowTest, ASoftGraceBeginsAtTheNextSync) {
  story.pod("hog", 2_GiB);
  step(0, 1_GiB);
  step(2'000, 400_MiB);
  step(10'000, 400_MiB);  // seen
  step(17'000, 400_MiB);
  ASSERT_EQ(shadow_result.predictions.size(), 1u) << "15 s after the crossing";
  EXPECT_EQ(shadow_result.predictions[0].lead, 13s)
      << "its grace is over at 25 s, its look comes at 30 s";
}

TEST_F(ShadowTest, RanksByUsageOfTheLastSync) {
  const auto hog = story.pod("hog", 1_MiB);
  story.pod("quiet", 300_MiB);
  step(0, 2_GiB);
  story.record(hog).memory_usage = 2u << 30;
  step(3'000, 100_MiB);
  ASSERT_EQ(shadow_result.predictions.size(), 1u);
  EXPECT_FALSE(shadow_result.predictions[0].same);
  EXPECT_EQ(shadow_result.predictions[0].choice->name, "quiet");
}

TEST_F(ShadowTest, APodWithoutStatsGoesFirst) {
  story.pod("hog", 2_GiB);
  step(0, 1_GiB);
  story.pod("just_born", 1_MiB);
  step(3'000, 100_MiB);
  EXPECT_EQ(shadow_result.predictions.at(0).choice->name, "just_born");
}

TEST_F(ShadowTest, ACriticalPodIsNeverChosen) {
  story.reading(story.pod("bank", 3_GiB)).critical = true;
  story.pod("hog", 1_GiB);
  step(0, 1_GiB);
  step(3'000, 100_MiB);
  EXPECT_TRUE(shadow_result.predictions.at(0).same);
}

TEST_F(ShadowTest, ASyncWhileAVictimExitsIsUnneeded) {
  story.pod("hog", 3_GiB);
  story.pod("web", 1_GiB);
  step(0, 1_GiB);
  step(9'500, 100_MiB);
  EXPECT_FALSE(step(9'900, 100_MiB).evicts);
  EXPECT_TRUE(step(10'000, 100_MiB).evicts);
  EXPECT_TRUE(shadow_result.unneeded);
  EXPECT_FALSE(step(10'100, 100_MiB).evicts) << "until its next look";
}

TEST_F(ShadowTest, ASyncAtTheSameTurnHasNoLead) {
  story.pod("hog", 3_GiB);
  step(0, 1_GiB);
  step(10'000, 100_MiB);
  EXPECT_TRUE(shadow_result.evicts);
  EXPECT_FALSE(shadow_result.unneeded);
  EXPECT_EQ(shadow_result.predictions.at(0).lead, 0s);
}

TEST_F(ShadowTest, EachOfSeveralDecisionsIsComparedWithItsOwnSync) {
  for (const char* name : {"one", "two", "three"}) {
    const auto pod = story.pod(name, 60_MiB);
    story.record(pod).anon = 60ull << 20;
  }
  step(0, 1_GiB);
  step(4'000, 100_MiB);
  ASSERT_EQ(shadow_result.predictions.size(), 2u) << "a hundred MiB are short";
  EXPECT_EQ(shadow_result.predictions[0].lead, 6s);
  EXPECT_EQ(shadow_result.predictions[1].lead, 16s);
  EXPECT_NE(shadow_result.predictions[0].choice, shadow_result.predictions[1].choice);
  EXPECT_TRUE(shadow_result.predictions[0].same && shadow_result.predictions[1].same);
}

TEST_F(ShadowTest, ATerminatingPodIsNotChosen) {
  for (const char* name : {"first", "second"})
    story.pod(name, 1_GiB);
  story.pod("idle", 1_MiB);
  step(0, 1_GiB);
  step(1'000, 100_MiB);
  const auto gone = shadow_result.predictions.at(0).cgroup;
  for (std::int64_t ms = 2'000;
       shadow_result.predictions.empty() || shadow_result.predictions[0].cgroup == gone;
       ms += 1'000) {
    ASSERT_LT(ms, 60'000) << "the first gives nothing back: another is chosen in time";
    step(ms, 100_MiB);
  }
  EXPECT_TRUE(shadow_result.predictions.at(0).same);
}

}  // namespace
}  // namespace headroom
