// SPDX-License-Identifier: Apache-2.0
// NoExecute walked through stepped instants: who leaves, when, and what keeps or cancels a timer.
#include "judge/admission/taints.h"
#include "support/story.h"

#include <gtest/gtest.h>

namespace headroom {
namespace {

using namespace test;
using std::chrono::seconds;
using Lines = std::vector<std::string>;
const Lines kNothing;

TaintRef no_execute(const char* key, const char* value = "") {
  return std::make_shared<const Taint>(Taint{key, value, TaintEffect::kNoExecute});
}

Toleration tolerating(const char* key, std::optional<seconds> time = std::nullopt) {
  Toleration toleration;
  toleration.key = key;
  toleration.op = Toleration::Operator::kExists;
  toleration.seconds = time;
  return toleration;
}

// A node with room, whose pods are changed before it is looked at.
struct Node : Story {
  Node() : Story(Policy{}) { policy.mode = Mode::kEnforce; }

  std::size_t add(const std::string& name, std::vector<Toleration> tolerations,
                  seconds grace = seconds(0)) {
    const std::size_t index = pod(name, 100_MiB);
    auto changed = std::make_shared<Pod>(*reading(index).pod);
    changed->placement.tolerations = std::move(tolerations);
    changed->termination_grace = grace;
    reading(index).pod = std::move(changed);
    return index;
  }
  void change(std::size_t index, const std::function<void(Pod&)>& how) {
    auto changed = std::make_shared<Pod>(*reading(index).pod);
    how(*changed);
    reading(index).pod = std::move(changed);
  }
  Lines at(std::int64_t ms, Outcome::Result result = Outcome::Result::kDone) {
    step(ms, 2_GiB, result);
    return decided();
  }
};

// What it tolerates is unknown: it may be this taint.
TEST(NoExecute, LeavesAPodWithATolerationThatWasNotParsed) {
  Node node;
  Toleration unknown = tolerating("dedicated");
  unknown.op = Toleration::Operator::kUnknown;
  node.add("same_key", {unknown});
  unknown.key.clear();
  node.add("every_key", {unknown});
  unknown.effect = TaintEffect::kNoSchedule;
  node.add("another_effect", {unknown});
  unknown = {.key = "other", .op = Toleration::Operator::kUnknown};
  node.add("another_key", {unknown});
  node.policy.taints = {no_execute("dedicated", "gpu")};
  EXPECT_EQ(node.at(1000), (Lines{"kill another_effect", "kill another_key"}));
}

TEST(NoExecute, EvictsAPodWithoutTolerationAtOnceWithItsGrace) {
  Node node;
  node.add("web", {}, seconds(7));
  node.policy.taints = {no_execute("dedicated", "gpu")};
  EXPECT_EQ(node.at(1000), Lines{"terminate web"});
  const Decision& decision = node.verdict.decisions[0];
  EXPECT_EQ(decision.deadline, at_ms(8000));
  EXPECT_EQ(decision.reason.cause, Cause::kTaint);
  EXPECT_EQ(cause_name(decision.reason), "taint");
  ASSERT_TRUE(decision.reason.taint);
  EXPECT_EQ(to_string(*decision.reason.taint), "dedicated=gpu:NoExecute");
  EXPECT_EQ(node.at(2000), kNothing) << "it has its grace";
  EXPECT_EQ(node.at(8000), Lines{"kill web"});
}

TEST(NoExecute, RunsThePreStopCommandsFirst) {
  Node node;
  const auto db = node.add("db", {}, seconds(7));
  node.change(db, [](Pod& pod) { pod.containers.emplace_back().pre_stop = {"/flush"}; });
  node.policy.taints = {no_execute("dedicated", "gpu")};
  EXPECT_EQ(node.at(1000, Outcome::Result::kStarted), Lines{"pre-stop db"});
  EXPECT_EQ(node.at(5999), kNothing);
  EXPECT_EQ(node.at(6000), Lines{"terminate db"}) << "two seconds are kept for SIGTERM";
  EXPECT_EQ(node.at(8000), Lines{"kill db"});
}

TEST(NoExecute, KeepsPodsThatTolerate) {
  Node node;
  node.add("tolerant", {tolerating("dedicated")});
  node.add("of_all_keys", {tolerating("")});
  const auto is_static = node.add("static", {});
  node.change(is_static, [](Pod& pod) { pod.is_static = true; });
  const auto unknown = node.add("undescribed", {});
  node.change(unknown, [](Pod& pod) { pod.source = PodSource::kCgroupTree; });
  const auto empty = node.add("empty", {});
  node.record(empty).populated = 0;
  const auto of_daemon_set = node.add("daemon_set", {tolerating("dedicated")});
  node.change(of_daemon_set, [](Pod& pod) { pod.placement.daemon_set = true; });
  node.policy.taints = {no_execute("dedicated")};
  EXPECT_EQ(node.at(0), kNothing);
  EXPECT_EQ(node.at(3'600'000), kNothing);
  node.policy.taints = {no_execute("node.kubernetes.io/unreachable")};
  EXPECT_EQ(node.at(3'700'000), Lines{"kill tolerant"}) << "DaemonSets tolerate that one";
}

TEST(NoExecute, NoScheduleNeverEvicts) {
  Node node;
  node.add("web", {});
  node.policy.taints = {
      std::make_shared<const Taint>(Taint{"a", "", TaintEffect::kNoSchedule}),
      std::make_shared<const Taint>(Taint{"b", "", TaintEffect::kPreferNoSchedule})};
  EXPECT_EQ(node.at(0), kNothing);
  EXPECT_TRUE(node.history.taint_timers.empty());
}

TEST(NoExecute, WaitsForTheShortestTolerationSeconds) {
  Node node;
  node.add("web", {tolerating("a", seconds(60)), tolerating("", seconds(30))});
  node.policy.taints = {no_execute("a")};
  node.policy.check_ceiling = seconds(100);
  EXPECT_EQ(node.at(1000), kNothing);
  EXPECT_EQ(node.verdict.next_check, at_ms(31'000));
  EXPECT_EQ(node.at(30'999), kNothing);
  EXPECT_EQ(node.at(31'000), Lines{"kill web"});
  EXPECT_EQ(node.verdict.decisions[0].reason.first_crossed, at_ms(1000));
}

TEST(NoExecute, ANodeSnapshotRequestsCgroupsOnceATimerIsDue) {
  Node node;
  node.add("web", {tolerating("a", seconds(30))});
  node.policy.taints = {no_execute("a")};
  node.at(0);
  Verdict verdict;
  judge(node.policy, node.snapshot(29'000, 2_GiB, false), node.history, verdict);
  EXPECT_FALSE(verdict.needs_cgroups);
  ASSERT_EQ(verdict.after.taint_timers.size(), 1u) << "nothing is forgotten";
  judge(node.policy, node.snapshot(30'000, 2_GiB, false), node.history, verdict);
  EXPECT_TRUE(verdict.needs_cgroups);
  node.at(30'000, Outcome::Result::kFailed);
  judge(node.policy, node.snapshot(30'001, 2_GiB, false), node.history, verdict);
  EXPECT_FALSE(verdict.needs_cgroups) << "one that has been heard is not heard on every check";
}

TEST(NoExecute, ARunningTimerIsKept) {
  Node node;
  const auto web = node.add("web", {tolerating("", seconds(30))});
  node.policy.taints = {no_execute("a")};
  node.at(0);
  node.policy.taints = {no_execute("b"), no_execute("c")};
  EXPECT_EQ(node.at(10'000), kNothing);
  node.change(web, [](Pod& pod) { pod.placement.tolerations[0].seconds = seconds(5); });
  EXPECT_EQ(node.at(20'000), kNothing) << "a shorter time does not bring it forward";
  node.change(web, [](Pod& pod) { pod.placement.tolerations[0].seconds = seconds(500); });
  EXPECT_EQ(node.at(29'999), kNothing);
  EXPECT_EQ(node.at(30'000), Lines{"kill web"}) << "nor a longer one put it off";
}

TEST(NoExecute, ATimerIsCancelledWhenTolerationsOrTaintsChange) {
  struct Case {
    const char* says;
    std::function<void(Node&)> at_ten_seconds;
    Lines then;
  };
  for (const Case& c :
       {Case{"tolerated_for_ever",
             [](Node& node) {
               node.change(0, [](Pod& pod) { pod.placement.tolerations[0].seconds.reset(); });
             },
             kNothing},
        Case{
            "not_tolerated_at_all",
            [](Node& node) { node.change(0, [](Pod& pod) { pod.placement.tolerations.clear(); }); },
            Lines{"kill web"}},
        Case{"tolerated_for_no_time",
             [](Node& node) {
               node.change(0, [](Pod& pod) { pod.placement.tolerations[0].seconds = seconds(0); });
             },
             Lines{"kill web"}},
        Case{"no_taint_left", [](Node& node) { node.policy.taints.clear(); }, kNothing}}) {
    Node node;
    node.add("web", {tolerating("a", seconds(30))});
    node.policy.taints = {no_execute("a")};
    node.at(0);
    ASSERT_EQ(node.history.taint_timers.size(), 1u) << c.says;
    c.at_ten_seconds(node);
    EXPECT_EQ(node.at(10'000), c.then) << c.says;
    EXPECT_TRUE(node.history.taint_timers.empty()) << c.says;
  }
}

TEST(NoExecute, AfterACancelledTimerTheTimeStartsAgain) {
  Node node;
  node.add("web", {tolerating("a", seconds(30))});
  node.policy.taints = {no_execute("a")};
  node.at(0);
  node.policy.taints.clear();
  node.at(20'000);
  node.policy.taints = {no_execute("a")};
  EXPECT_EQ(node.at(40'000), kNothing);
  EXPECT_EQ(node.at(70'000), Lines{"kill web"});
}

TEST(NoExecute, AFailedActionIsDecidedAgain) {
  Node node;
  node.add("web", {tolerating("a", seconds(30))});
  node.policy.taints = {no_execute("a")};
  node.at(0);
  EXPECT_EQ(node.at(30'000, Outcome::Result::kFailed), Lines{"kill web"});
  EXPECT_EQ(node.at(31'000), Lines{"kill web"});
  EXPECT_EQ(node.at(31'010), kNothing) << "its memory is awaited";
}

TEST(NoExecute, DryRunReportsOnceAndResetsWithoutTheTaint) {
  Node node;
  node.add("web", {});
  node.policy.taints = {no_execute("a")};
  EXPECT_EQ(node.at(0, Outcome::Result::kDryRun), Lines{"kill web"});
  EXPECT_EQ(node.at(1000, Outcome::Result::kDryRun), kNothing);
  ASSERT_EQ(node.history.victims.size(), 1u);
  node.policy.taints.clear();
  EXPECT_EQ(node.at(2000, Outcome::Result::kDryRun), kNothing);
  EXPECT_TRUE(node.history.victims.empty());
  node.policy.taints = {no_execute("a")};
  EXPECT_EQ(node.at(3000, Outcome::Result::kDryRun), Lines{"kill web"});
}

TEST(NoExecute, ADryRunEvictionDelaysNoOther) {
  for (const Duration grace : {Duration(0), Duration(seconds(1))}) {
    Node node;
    node.policy.thresholds = {memory_below(200_MiB, grace)};
    node.add("guest", {}, seconds(60));
    node.policy.taints = {no_execute("a")};
    EXPECT_EQ(node.at(0, Outcome::Result::kDryRun), Lines{"terminate guest"});
    node.add("hog", {tolerating("a")});
    node.step(1000, 100_MiB, Outcome::Result::kDryRun);
    node.step(2100, 100_MiB, Outcome::Result::kDryRun);
    ASSERT_EQ(node.history.victims.size(), 2u);
    EXPECT_EQ(node.history.victims[1].pod->name, "hog");
    EXPECT_EQ(node.history.victims[0].reason.cause, Cause::kTaint);
  }
}

TEST(NoExecute, AHardThresholdDoesNotWaitForATaintsGrace) {
  Node node;
  node.policy.thresholds = {memory_below(200_MiB)};
  node.add("web", {}, seconds(60));
  node.policy.taints = {no_execute("a")};
  EXPECT_EQ(node.at(0), Lines{"terminate web"});
  node.step(1000, 100_MiB);
  EXPECT_EQ(node.decided(), Lines{"kill web"});
  EXPECT_EQ(node.verdict.decisions[0].reason.cause, Cause::kThreshold);
}

TEST(NoExecute, TimersSurviveAPolicyChange) {
  Node node;
  node.add("web", {tolerating("a", seconds(30))});
  node.policy.taints = {no_execute("a")};
  node.at(0);
  const History carried = carry_over(node.policy, node.history, node.policy);
  ASSERT_EQ(carried.taint_timers.size(), 1u);
  EXPECT_EQ(carried.taint_timers[0].due(), at_ms(30'000));
}

TEST(Tolerations, MatchByKeyValueAndEffect) {
  const Taint taint{"dedicated", "gpu", TaintEffect::kNoExecute};
  struct Case {
    const char* says;
    Toleration toleration;
    bool tolerates;
  };
  for (const Case& c : {
           Case{"equal", {.key = "dedicated", .value = "gpu"}, true},
           Case{"another_value", {.key = "dedicated", .value = "cpu"}, false},
           Case{"no_value", {.key = "dedicated"}, false},
           Case{"exists", {.key = "dedicated", .op = Toleration::Operator::kExists}, true},
           Case{"another_key", {.key = "other", .op = Toleration::Operator::kExists}, false},
           Case{"every_key", {.op = Toleration::Operator::kExists}, true},
           Case{"equal_without_a_key", {.value = "gpu"}, true},
           Case{"its_effect",
                {.key = "dedicated", .value = "gpu", .effect = TaintEffect::kNoExecute},
                true},
           Case{"another_effect",
                {.key = "dedicated", .value = "gpu", .effect = TaintEffect::kNoSchedule},
                false},
           Case{"unknown", {.key = "dedicated", .op = Toleration::Operator::kUnknown}, false},
           Case{"every_key_of_another_effect",
                {.op = Toleration::Operator::kExists, .effect = TaintEffect::kPreferNoSchedule},
                false},
       })
    EXPECT_EQ(tolerates(c.toleration, taint), c.tolerates) << c.says;
}

TEST(Tolerations, AreAddedByQosClassAndForDaemonSets) {
  const Taint& memory = taint_of(Condition::kMemoryPressure);
  const Taint& disk = taint_of(Condition::kDiskPressure);
  EXPECT_EQ(to_string(memory), "node.kubernetes.io/memory-pressure:NoSchedule");
  Pod pod;
  pod.declared_qos = QosClass::kBestEffort;
  EXPECT_FALSE(tolerates(pod, memory));
  pod.declared_qos = QosClass::kBurstable;
  EXPECT_TRUE(tolerates(pod, memory));
  EXPECT_FALSE(tolerates(pod, disk));
  EXPECT_FALSE(tolerates(pod, Taint{memory.key, "", TaintEffect::kNoExecute}));
  pod.declared_qos = QosClass::kBestEffort;
  pod.placement.daemon_set = true;
  for (const Taint& taint : condition_taints({true, true, true}))
    EXPECT_TRUE(tolerates(pod, taint)) << taint.key;
  EXPECT_TRUE(tolerates(pod, Taint{"node.kubernetes.io/not-ready", "", TaintEffect::kNoExecute}));
}

}  // namespace
}  // namespace headroom
