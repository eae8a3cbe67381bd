// SPDX-License-Identifier: Apache-2.0
// The ranking in oom_score_adj: who has which value, within which bounds.
#include "judge/eviction/selection.h"
#include "judge/oom/oom_score.h"
#include "support/story.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::judge_eviction {
namespace {

using test::kCapacity;
using test::Story;

class OomScoreRankingTest : public testing::Test {
 protected:
  // A pod as a manifest describes it: of this class, with one container.
  std::size_t pod(const std::string& name, QosClass qos, Bytes holds, Bytes request = {},
                  std::int32_t priority = 0) {
    const std::size_t index = story.pod(name, holds, request, priority);
    auto scores = std::make_shared<Pod>(*story.reading(index).pod);
    scores->source = PodSource::kManifest;
    scores->declared_qos = qos;
    Container container;
    container.name = "main";
    if (request.count > 0)
      container.requests.emplace("memory",
                                 Quantity::of(request.count, Quantity::Format::kBinarySI));
    scores->containers = {container};
    story.reading(index).pod = std::move(scores);
    return index;
  }

  // "first 1000, second 625": in the order they were made.
  std::string values() {
    const Snapshot snapshot = story.snapshot(1000, 1_GiB);
    const auto first = rank_for_failsafe(story.policy, snapshot, story.history, 16);
    std::string all;
    for (const OomScore& score : mirrored_oom_scores(snapshot, first, Bytes{kCapacity})) {
      for (const PodReading& reading : snapshot.pods)
        if (reading.cgroup == score.cgroup)
          all += (all.empty() ? "" : ", ") + reading.pod->name + " " + std::to_string(score.value);
    }
    return all;
  }

  static Policy policy() {
    Policy policy;
    policy.thresholds = {test::memory_below(100_MiB)};
    return policy;
  }
  Story story{policy()};
};

TEST_F(OomScoreRankingTest, TheFirstIsFarAheadOfTheOthers) {
  pod("big", QosClass::kBestEffort, 1_GiB, {}, 100);
  pod("small", QosClass::kBestEffort, 50_MiB, {}, -10);
  pod("next", QosClass::kBestEffort, 400_MiB);
  EXPECT_EQ(values(), "big 531, small 1000, next 625");
}

TEST_F(OomScoreRankingTest, TheLastPodsShareTheLowestScore) {
  for (int i = 0; i < 9; ++i)
    pod("p" + std::to_string(i), QosClass::kBestEffort, 100_MiB, {}, i);
  EXPECT_EQ(values(), "p0 1000, p1 625, p2 531, p3 507, p4 501, p5 500, p6 500, p7 500, p8 500");
}

TEST_F(OomScoreRankingTest, BestEffortStaysAboveWhatTheFormulaGivesToBurstable) {
  pod("web", QosClass::kBurstable, 100_MiB, 1_GiB);      // formula: 750
  pod("cache", QosClass::kBurstable, 900_MiB, 512_MiB);  // formula: 875, and over its request
  pod("batch", QosClass::kBestEffort, 200_MiB);
  pod("cron", QosClass::kBestEffort, 20_MiB);
  EXPECT_EQ(values(), "web 781, cache 875, batch 1000, cron 907");
}

TEST_F(OomScoreRankingTest, OneBurstableKeepsWhatTheFormulaGivesIt) {
  pod("web", QosClass::kBurstable, 1_GiB, 1_GiB);
  EXPECT_EQ(values(), "web 750");
}

TEST_F(OomScoreRankingTest, GuaranteedCriticalAndUnknownPodsAreNotWritten) {
  pod("bank", QosClass::kGuaranteed, 1_GiB, 1_GiB);
  story.reading(pod("static", QosClass::kBestEffort, 1_GiB)).critical = true;
  const std::size_t unknown = pod("unknown", QosClass::kBestEffort, 1_GiB);
  auto tree = std::make_shared<Pod>(*story.reading(unknown).pod);
  tree->source = PodSource::kCgroupTree;
  story.reading(unknown).pod = tree;
  EXPECT_EQ(values(), "");
}

}  // namespace
}  // namespace headroom::judge_eviction
