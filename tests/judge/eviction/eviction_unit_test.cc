// SPDX-License-Identifier: Apache-2.0
// What a kill takes: the pod, its worst container, its largest process; and what comes next.
#include "judge/eviction/selection.h"
#include "support/story.h"

#include <gtest/gtest.h>

namespace headroom {
namespace {

using namespace test;
using std::chrono::seconds;
using Lines = std::vector<std::string>;
const Lines kNothing;

Policy taking(EvictionUnit unit) {
  Policy policy;
  policy.thresholds = {memory_below(200_MiB)};
  policy.mode = Mode::kEnforce;
  policy.eviction_unit = unit;
  return policy;
}

// A pod whose record says what its processes hold.
std::size_t pod_of_processes(Story& story, const std::string& name, Bytes held) {
  const auto pod = story.pod(name, held);
  story.record(pod).anon = static_cast<std::uint64_t>(held.count);
  return pod;
}

void runs(Story& story, std::size_t pod, std::int32_t pid, Bytes held, CgroupId group = {}) {
  ProcessReading process{.name = {pid, 77}, .cgroup = CgroupId{900}, .group = group, .held = held};
  process.comm[0] = 'x';
  story.parts(pod).largest = process;
}

TEST(EvictionUnit, TheContainerFurthestAboveItsRequestIsKilled) {
  Story story(taking(EvictionUnit::kContainer));
  const auto web = pod_of_processes(story, "web", 1_GiB);
  story.container(web, 600_MiB, 550_MiB);
  const CgroupId worst = story.container(web, 400_MiB, 100_MiB).cgroup;
  story.step(0, 190_MiB);
  ASSERT_EQ(story.decided(), Lines{"kill web's container"});
  const Decision& decision = story.verdict.decisions[0];
  EXPECT_EQ(decision.part.cgroup, worst);
  EXPECT_EQ(decision.cgroup, story.reading(web).cgroup) << "of this pod";
  EXPECT_EQ(decision.rank_info.predicted, (400_MiB).count) << "the part is sized, not the pod";
  EXPECT_EQ(decision.rank_info.memory_request, 100_MiB);
}

TEST(EvictionUnit, ThePodsAnnotationOverridesTheNodesSetting) {
  for (const EvictionUnit node : {EvictionUnit::kPod, EvictionUnit::kContainer}) {
    Story story(taking(node));
    const auto web = pod_of_processes(story, "web", 1_GiB);
    story.container(web, 600_MiB);
    const bool pod = node == EvictionUnit::kContainer;
    story.reading(web).unit = pod ? EvictionUnit::kPod : EvictionUnit::kContainer;
    story.step(0, 190_MiB);
    EXPECT_EQ(story.decided(), Lines{pod ? "kill web" : "kill web's container"});
  }
}

TEST(EvictionUnit, TheLargestProcessIsKilledByItsIdentity) {
  Story story(taking(EvictionUnit::kProcess));
  const auto web = pod_of_processes(story, "web", 1_GiB);
  runs(story, web, 4711, 300_MiB);
  story.step(0, 190_MiB);
  ASSERT_EQ(story.decided(), Lines{"kill web's process"});
  EXPECT_EQ(story.verdict.decisions[0].part.process, (ProcessIdentity{4711, 77}));
  EXPECT_EQ(story.verdict.decisions[0].rank_info.predicted, (300_MiB).count);
  story.step(5, 190_MiB);
  EXPECT_EQ(story.decided(), kNothing) << "its memory is on its way";
  story.processes_exit(web, 8);
  story.step(10, 480_MiB);
  ASSERT_EQ(story.verdict.eviction_ends.size(), 1u);
  EXPECT_TRUE(story.verdict.eviction_ends[0].gone);
  EXPECT_EQ(story.verdict.eviction_ends[0].ended_at, at_ms(8)) << "when its exit was reported";
  EXPECT_TRUE(story.history.victims.empty());
}

struct GroupCase {
  const char* name;
  bool of_pod, of_inner;
  Lines wanted;
};

TEST(EvictionUnit, AnOomGroupIsNeverKilledPartially) {
  const GroupCase cases[] = {
      {"neither", false, false, {"kill web's process"}},
      {"its_container", false, true, {"kill web's container"}},
      {"its_pod", true, false, {"kill web"}},
      {"both", true, true, {"kill web"}},
  };
  for (const GroupCase& each : cases) {
    Story story(taking(EvictionUnit::kProcess));
    const auto web = pod_of_processes(story, "web", 1_GiB);
    const CgroupId inner = story.container(web, 500_MiB).cgroup;
    story.parts(web).oom_group = each.of_pod;
    runs(story, web, 4711, 300_MiB,
         each.of_pod     ? story.reading(web).cgroup
         : each.of_inner ? inner
                         : CgroupId{});
    story.step(0, 190_MiB);
    EXPECT_EQ(story.decided(), each.wanted) << each.name;
    if (each.of_inner && !each.of_pod) {
      EXPECT_EQ(story.verdict.decisions[0].part.cgroup, inner);
      EXPECT_TRUE(story.verdict.decisions[0].part.group);
      EXPECT_EQ(story.verdict.decisions[0].rank_info.predicted, (500_MiB).count)
          << "all that dies is counted";
    }
  }
}

TEST(EvictionUnit, APartThatIsNotEnoughIsNotChosen) {
  Story story(taking(EvictionUnit::kContainer));
  const auto web = pod_of_processes(story, "web", 1_GiB);
  pod_of_processes(story, "db", 900_MiB);
  story.container(web, 50_MiB);
  story.step(0, 100_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill web"}) << "100 MiB are missing: the next need not pay";
}

TEST(EvictionUnit, WhenThePartWasNotEnoughThePodIsEvicted) {
  Story story(taking(EvictionUnit::kContainer));
  const auto web = pod_of_processes(story, "web", 1_GiB);
  pod_of_processes(story, "db", 900_MiB);
  story.container(web, 300_MiB);
  story.container(web, 200_MiB);
  story.step(0, 190_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill web's container"});
  story.parts(web).parts[0].populated = false;
  story.step(10, 150_MiB);
  EXPECT_EQ(story.verdict.eviction_ends.size(), 1u);
  story.step(15, 150_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill web"}) << "for the same crossing, not db";
}

TEST(EvictionUnit, AtTheNextCrossingAnotherPartIsChosen) {
  Story story(taking(EvictionUnit::kContainer));
  const auto web = pod_of_processes(story, "web", 1_GiB);
  story.container(web, 300_MiB);
  story.container(web, 200_MiB);
  story.step(0, 190_MiB);
  story.parts(web).parts.erase(story.parts(web).parts.begin());
  story.step(10, 490_MiB);
  story.step(1000, 190_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill web's container"});
}

TEST(EvictionUnit, WhileAPartExitsItsReleaseIsCounted) {
  Story story(taking(EvictionUnit::kContainer));
  const auto web = pod_of_processes(story, "web", 1_GiB);
  pod_of_processes(story, "db", 900_MiB);
  story.container(web, 300_MiB);
  story.step(0, 190_MiB);
  story.step(5, 60_MiB);
  EXPECT_EQ(story.decided(), kNothing) << "it fills on, but 300 MiB are to come";
  story.policy.thresholds[0].min_reclaim =
      Quantity::of((400_MiB).count, Quantity::Format::kBinarySI);
  story.step(10, 60_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill web"}) << "the blame is still its own, not db's";
}

TEST(EvictionUnit, AfterAStuckPartTheWholePodIsEvicted) {
  Story story(taking(EvictionUnit::kProcess));
  const auto web = pod_of_processes(story, "web", 1_GiB);
  runs(story, web, 4711, 100_MiB);
  story.step(0, 190_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill web's process"});
  story.step(10, 190_MiB);
  story.step(1000, 190_MiB);
  EXPECT_EQ(story.decided(), kNothing);
  story.step(1100, 190_MiB);
  ASSERT_EQ(story.verdict.eviction_ends.size(), 1u);
  EXPECT_FALSE(story.verdict.eviction_ends[0].gone);
  EXPECT_EQ(story.decided(), Lines{"kill web"});
}

TEST(EvictionUnit, OnlyMemoryShortageKillsParts) {
  for (const Signal signal : {Signal::kPidAvailable, Signal::kNodeFsAvailable}) {
    Policy policy = taking(EvictionUnit::kProcess);
    policy.thresholds = {below(signal, 100)};
    Story story(policy);
    const auto web = pod_of_processes(story, "web", 1_GiB);
    story.record(web).pids_current = 4000;
    story.uses_disk(web, 10, 1_GiB);
    runs(story, web, 4711, 300_MiB);
    story.step(10, {{signal, 50, 32768}});
    EXPECT_EQ(story.decided(), Lines{"kill web"}) << name(signal);
  }
}

TEST(EvictionUnit, ASoftEvictionTerminatesThePart) {
  Policy policy = taking(EvictionUnit::kContainer);
  policy.thresholds = {memory_below(500_MiB, seconds(1))};
  policy.max_pod_grace = seconds(5);
  Story story(policy);
  const auto web = pod_of_processes(story, "web", 1_GiB);
  story.container(web, 300_MiB);
  story.step(0, 480_MiB);
  story.step(1000, 480_MiB);
  EXPECT_EQ(story.decided(), Lines{"terminate web's container"});
  story.step(6000, 480_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill web's container"}) << "the same one";
}

TEST(EvictionUnit, WithoutPartReadingsThePodIsEvicted) {
  for (const EvictionUnit unit : {EvictionUnit::kContainer, EvictionUnit::kProcess}) {
    Story story(taking(unit));
    const auto web = pod_of_processes(story, "web", 1_GiB);
    story.parts(web);
    story.step(0, 190_MiB);
    EXPECT_EQ(story.decided(), Lines{"kill web"});
  }
}

TEST(EvictionUnit, TheFailsafeRankingHasThePartThenThePod) {
  Story story(taking(EvictionUnit::kContainer));
  const auto web = pod_of_processes(story, "web", 1_GiB);
  pod_of_processes(story, "db", 500_MiB);
  story.container(web, 300_MiB);
  const auto list =
      judge_eviction::rank_for_failsafe(story.policy, story.snapshot(0, 1_GiB), story.history, 16);
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].part.unit, EvictionUnit::kContainer);
  EXPECT_TRUE(list[1].part.whole());
  EXPECT_EQ(list[1].cgroup, list[0].cgroup);
  EXPECT_EQ(list[2].pod->name, "db");
}

}  // namespace
}  // namespace headroom
