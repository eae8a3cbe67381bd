// SPDX-License-Identifier: Apache-2.0
// Eviction for cpu.pressure walked through windows: which pod, how often, and when none.
#include "support/story.h"

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom {
namespace {

using namespace test;
using namespace std::chrono_literals;
using Lines = std::vector<std::string>;
using Selection = Candidate::Selection;
const Lines kNothing;
constexpr std::int64_t kWhole = 1'000'000;

// More than 30 % of the time lost, for ten seconds; a pod every five minutes.
Policy more_than_thirty_percent() {
  Policy policy;
  policy.thresholds = {Threshold{.signal = Signal::kCpuPressure,
                                 .value = Fraction{0.7F},
                                 .grace = 10s,
                                 .min_reclaim = std::nullopt}};
  policy.mode = Mode::kEnforce;
  policy.cpu_eviction_period = 5min;
  return policy;
}

class CpuEviction : public ::testing::Test {
 protected:
  std::size_t pod(const char* name, std::int64_t request, std::int64_t used, int held_up,
                  std::int32_t priority = 0) {
    const std::size_t index = story_.pod(name, 64_MiB, {}, priority);
    auto described = std::make_shared<Pod>(*story_.reading(index).pod);
    Container container;
    if (request > 0) container.requests.emplace("cpu", Quantity::of_milli(request));
    described->containers.push_back(std::move(container));
    described->termination_grace = 0s;
    story_.reading(index).pod = std::move(described);
    ids_.push_back(story_.reading(index).cgroup.value);
    uses_.push_back({.used = MilliCpu{used}, .held_up = held_up * kWhole / 100});
    return index;
  }
  // The next window, 5 s later, in which so many percent of the time were lost.
  Lines window(std::optional<int> lost = 60) {
    ms_ += 5000;
    story_.cpu_use = ByCgroup<CpuUse>{.ids = ids_, .values = uses_};
    if (lost)
      story_.step(ms_, {{Signal::kCpuPressure, kWhole - *lost * kWhole / 100, kWhole}});
    else
      story_.step(ms_, {});
    return story_.decided();
  }
  // The decisions of so many windows, all but the empty ones.
  Lines windows(int count, std::optional<int> lost = 60) {
    Lines all;
    for (int i = 0; i < count; ++i)
      for (const std::string& line : window(lost))
        all.push_back(line);
    return all;
  }
  // Its process has ended, and its cgroup is gone.
  void ends(std::size_t pod) {
    story_.remove_pod(pod);
    ids_.erase(ids_.begin() + static_cast<std::ptrdiff_t>(pod));
    uses_.erase(uses_.begin() + static_cast<std::ptrdiff_t>(pod));
  }
  Selection selection_of(std::size_t pod) const {
    for (const Candidate& each : story_.verdict.ranking)
      if (each.pod == pod) return each.selection;
    return Selection::kEmpty;
  }

  Story story_{more_than_thirty_percent()};
  std::int64_t ms_ = 0;
  std::vector<std::uint64_t> ids_;
  std::vector<CpuUse> uses_;
};

TEST_F(CpuEviction, NoPodUnlessItIsAskedFor) {
  story_.policy.cpu_eviction_period.reset();
  pod("hog", 0, 1500, 50);
  EXPECT_EQ(windows(100), kNothing);
}

TEST_F(CpuEviction, ThePodThatExplainsTheWaitsAfterTheGrace) {
  pod("web", 1000, 500, 30, 100);
  pod("hog", 0, 1500, 50);
  EXPECT_EQ(windows(2), kNothing) << "the grace";
  EXPECT_EQ(window(), Lines{"kill hog"});
  const Decision& decision = story_.verdict.decisions[0];
  EXPECT_EQ(decision.reason.signal, Signal::kCpuPressure);
  EXPECT_EQ(decision.rank_info.usage, 1500);
  EXPECT_EQ(decision.rank_info.predicted, 500'000);
  EXPECT_TRUE(decision.part.whole());
}

TEST_F(CpuEviction, ALowerPriorityFirstThenTheFurthestOverItsRequest) {
  pod("important", 0, 1500, 50, 10);
  pod("greedy", 500, 1000, 20);
  pod("greedier", 0, 800, 15);
  EXPECT_EQ(windows(3), Lines{"kill greedier"});
  EXPECT_EQ(selection_of(0), Selection::kOutranked);
}

TEST_F(CpuEviction, OnePodInAPeriod) {
  pod("a", 0, 900, 30);
  pod("b", 0, 800, 30);
  pod("c", 0, 700, 30);
  EXPECT_EQ(windows(3), Lines{"kill a"});
  ends(0);
  EXPECT_EQ(windows(59), kNothing) << "five minutes, less a window";
  EXPECT_EQ(window(), Lines{"kill b"});
}

TEST_F(CpuEviction, WhileItsVictimEndsNoOther) {
  story_.policy.cpu_eviction_period = 1s;
  story_.policy.max_pod_grace = std::chrono::seconds(-1);
  const std::size_t a = pod("a", 0, 900, 30);
  auto slow = std::make_shared<Pod>(*story_.reading(a).pod);
  slow->termination_grace = 60s;
  story_.reading(a).pod = std::move(slow);
  pod("b", 0, 800, 30);
  EXPECT_EQ(windows(3), Lines{"terminate a"});
  EXPECT_EQ(windows(11), kNothing);
}

struct FutileCase {
  const char* name;
  std::int64_t request, used;
  int held_up;  // percent
  int lost;     // percent
  bool evicted;
};

TEST_F(CpuEviction, OnlyAPodWhoseUseExplainsTheWaits) {
  for (const FutileCase& each : std::vector<FutileCase>{
           {"within_its_request", 2000, 1500, 50, 60, false},
           {"at_its_request", 1500, 1500, 50, 60, false},
           {"over_its_request", 1000, 1500, 50, 60, true},
           {"it_holds_nothing_up", 0, 1500, 0, 60, false},
           {"half_of_what_is_missing", 0, 1500, 15, 60, true},
           {"all_together_explain_less_and_it_less_than_half", 0, 1500, 14, 60, false},
           {"a_little_over_the_threshold", 0, 300, 2, 31, true}}) {
    Story story(more_than_thirty_percent());
    const std::size_t index = story.pod("hog", 64_MiB);
    auto described = std::make_shared<Pod>(*story.reading(index).pod);
    Container container;
    if (each.request > 0) container.requests.emplace("cpu", Quantity::of_milli(each.request));
    described->containers.push_back(std::move(container));
    story.reading(index).pod = std::move(described);
    const std::vector<std::uint64_t> ids{story.reading(index).cgroup.value};
    const std::vector<CpuUse> uses{
        {.used = MilliCpu{each.used}, .held_up = each.held_up * kWhole / 100}};
    story.cpu_use = ByCgroup<CpuUse>{.ids = ids, .values = uses};
    for (int i = 1; i <= 3; ++i)
      story.step(5000 * i, {{Signal::kCpuPressure, kWhole - each.lost * kWhole / 100, kWhole}});
    EXPECT_EQ(!story.decided().empty(), each.evicted) << each.name;
  }
}

TEST_F(CpuEviction, ASmallPodIsPassedOverBesideOneThatExplainsTheWaits) {
  const std::size_t small = pod("small", 0, 100, 3, -10);
  pod("hog", 0, 1500, 50);
  EXPECT_EQ(windows(3), Lines{"kill hog"}) << "an eighth of what is missing would be enough";
  EXPECT_EQ(selection_of(small), Selection::kNothingToFree);
}

TEST_F(CpuEviction, NeverACriticalPodOrOneOfWhichTooLittleIsKnown) {
  story_.reading(pod("critical", 0, 1500, 50)).critical = true;
  story_.reading(pod("awaited", 0, 1500, 50)).description = PodDescription::kAwaited;
  pod("unread", 0, 1500, 50);
  ids_.pop_back();
  uses_.pop_back();
  EXPECT_EQ(windows(10), kNothing);
  EXPECT_EQ(selection_of(2), Selection::kUnknown);
}

TEST_F(CpuEviction, AnUnknownReadingEvictsNothing) {
  pod("hog", 0, 1500, 50);
  EXPECT_EQ(windows(2), kNothing);
  EXPECT_EQ(windows(10, std::nullopt), kNothing);
}

TEST_F(CpuEviction, AShortageOfMemoryComesFirst) {
  story_.policy.thresholds.push_back(memory_below(500_MiB));
  pod("hog", 0, 1500, 50);
  story_.record(story_.pod("large", 2_GiB)).anon = std::uint64_t{2} << 30;
  windows(2);
  ms_ += 5000;
  story_.step(ms_, {{Signal::kCpuPressure, kWhole * 4 / 10, kWhole},
                    {Signal::kMemoryAvailable, (100_MiB).count}});
  ASSERT_EQ(story_.verdict.decisions.size(), 1u);
  EXPECT_EQ(story_.verdict.decisions[0].reason.signal, Signal::kMemoryAvailable);
}

TEST_F(CpuEviction, AfterAnyEvictionTheGraceBeginsAnew) {
  story_.policy.cpu_eviction_period = 1s;
  pod("a", 0, 900, 30);
  pod("b", 0, 800, 30);
  EXPECT_EQ(windows(3), Lines{"kill a"});
  ends(0);
  EXPECT_EQ(windows(3), kNothing) << "one shows its end, and then the grace";
  EXPECT_EQ(window(), Lines{"kill b"});
}

}  // namespace
}  // namespace headroom
