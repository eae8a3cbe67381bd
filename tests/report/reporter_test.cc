// SPDX-License-Identifier: Apache-2.0
// The reporter along stories of the judge: what is counted, written and shown, and what it costs.
#include "report/reporter.h"

#include "daemon/allocations.h"
#include "report/sample.h"
#include "support/story.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

using namespace std::chrono_literals;
using namespace headroom::literals;
using test::at_ms;
using Json = nlohmann::json;
using Result = Outcome::Result;

Policy policy_with(Duration grace) {
  Policy policy;
  policy.thresholds = {test::memory_below(100_MiB, grace)};
  policy.mode = Mode::kEnforce;
  policy.max_pod_grace = std::chrono::seconds(2);
  return policy;
}

// A story told to a reporter, turn by turn, as the engine tells it.
class Told {
 public:
  explicit Told(Policy policy = policy_with(0s)) : story(policy), shown(std::make_shared<Shown>()) {
    std::filesystem::remove(file_);
    reporter = std::make_unique<NodeReporter>(ReporterSetup{
        .shown = shown,
        .policy = policy,
        .audit_log = file_,
        .names = &names,
        .on_evicted = [this](const Eviction& eviction) { heard.push_back(eviction.message); }});
  }
  ~Told() { std::filesystem::remove(file_); }

  void turn(std::int64_t ms, std::optional<Bytes> available, Result result = Result::kDone,
            int error = 0) {
    const Snapshot snapshot = story.snapshot(ms, available);
    judge(story.policy, snapshot, story.history, story.verdict);
    outcomes.clear();
    for (const Decision& decision : story.verdict.decisions) {
      outcomes.push_back({decision, result, error, at_ms(ms)});
      learn(outcomes.back(), story.verdict.after);
    }
    reporter->tell(snapshot, story.verdict, outcomes);
    story.history = story.verdict.after;
  }

  const Counters& counters() {
    reading_ = shown->node.latest();
    return reading_->counters;
  }
  // Ends the reporter, which writes what it still has.
  std::vector<Json> audited() {
    reporter.reset();
    std::vector<Json> records;
    std::ifstream log(file_);
    for (std::string line; std::getline(log, line);)
      records.push_back(Json::parse(line));
    return records;
  }

  test::Story story;
  test::SampleNames names;
  std::shared_ptr<Shown> shown;
  std::unique_ptr<NodeReporter> reporter;
  std::vector<std::string> heard;
  std::vector<Outcome> outcomes;

 private:
  Published<NodeView>::Reading reading_;
  const std::filesystem::path file_ =
      ::testing::TempDir() + "headroom-reporter-" + std::to_string(::getpid()) + ".jsonl";
};

TEST(Reporter, AnEvictionIsCountedHeardAndAuditedOnce) {
  Told told;
  told.story.pod("hog", 1_GiB);
  told.story.pod("web", 200_MiB, 300_MiB);
  told.names.paths[100] = "/kubepods.slice/hog.slice";
  told.turn(5, 500_MiB);
  told.turn(15, 50_MiB);
  EXPECT_EQ(told.counters().evicted(Signal::kMemoryAvailable), 1u);
  ASSERT_EQ(told.heard.size(), 1u);
  EXPECT_EQ(told.heard[0],
            "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. ");
  told.story.record(0).populated = 0;
  told.story.record(0).memory_usage = 0;
  told.turn(100, 1_GiB);
  EXPECT_EQ(told.counters().victims_gone, 1u);
  EXPECT_EQ(told.counters().memory_returned, std::uint64_t{1} << 30);

  const auto records = told.audited();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["outcome"], "evicted");
  EXPECT_EQ(records[0]["pod"]["name"], "hog");
  EXPECT_EQ(records[0]["cgroup"]["path"], "/kubepods.slice/hog.slice");
  EXPECT_EQ(records[0]["ranking"].size(), 2u);
  EXPECT_EQ(records[0]["latency"]["crossing_to_decision_ms"], 10.0);
  EXPECT_EQ(records[0]["latency"]["signal_to_gone_ms"], 85.0);
}

TEST(Reporter, APodThatLosesAPartIsNotEvicted) {
  Policy policy = policy_with(0s);
  policy.eviction_unit = EvictionUnit::kContainer;
  Told told(policy);
  told.story.pod("hog", 1_GiB);
  told.story.container(0, 500_MiB);
  told.turn(5, 500_MiB);
  told.turn(15, 50_MiB);
  EXPECT_EQ(told.counters().evicted(Signal::kMemoryAvailable), 0u);
  EXPECT_EQ(told.counters().part_kills[static_cast<std::size_t>(EvictionUnit::kContainer)][0], 1u);
  EXPECT_TRUE(told.heard.empty()) << "nobody is told that the pod must go";
  told.story.parts(0).parts[0].populated = false;
  told.turn(100, 1_GiB);
  const auto records = told.audited();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["unit"], "container");
  EXPECT_EQ(records[0]["outcome"], "evicted");
  EXPECT_EQ(records[0]["predicted"]["release"], (500_MiB).count);
}

TEST(Reporter, TheMessageListsTheContainersOverTheirRequest) {
  Told told;
  told.story.pod("hog", 1_GiB);
  told.story.pod("child", 1_GiB);  // its container's cgroup, below it
  told.story.record(1).parent_id = 100;
  told.names.paths[101] = "/kubepods.slice/hog.slice/app.service";
  auto hog = std::make_shared<Pod>(*told.story.reading(0).pod);
  hog->containers.emplace_back().name = "app";
  told.story.reading(0).pod = hog;
  told.story.reading(1).critical = true;
  told.turn(0, 500_MiB);
  told.turn(10, 50_MiB);
  ASSERT_EQ(told.heard.size(), 1u);
  EXPECT_EQ(told.heard[0],
            "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. "
            "Container app was using 1Gi, request is 0, has larger consumption of memory. ");
}

TEST(Reporter, AGraceEndingInAKillIsOneEviction) {
  Told told(policy_with(1s));
  told.story.pod("hog", 1_GiB);
  for (std::int64_t ms = 0; ms <= 4'000; ms += 100)
    told.turn(ms, ms == 0 ? 500_MiB : 50_MiB);
  EXPECT_EQ(told.counters().evicted(Signal::kMemoryAvailable), 1u);
  told.story.vanish(0);
  told.turn(4'100, 1_GiB);
  const auto records = told.audited();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_NE(records[0]["instants_ns"]["terminated"], nullptr);
  EXPECT_NE(records[0]["instants_ns"]["killed"], nullptr);
  EXPECT_EQ(records[0]["instants_ns"]["signalled"], records[0]["instants_ns"]["terminated"]);
}

TEST(Reporter, AFailureThatRepeatsIsCountedEachTimeAndToldOnce) {
  Told told;
  told.story.pod("hog", 1_GiB);
  for (std::int64_t ms = 10; ms < 1'000; ms += 10)
    told.turn(ms, 50_MiB, Result::kFailed, EPERM);
  EXPECT_GT(told.counters().evictions[0][static_cast<std::size_t>(Result::kFailed)], 50u);
  EXPECT_EQ(told.counters().evicted(Signal::kMemoryAvailable), 0u);
  EXPECT_TRUE(told.heard.empty());
  told.turn(1'000, 50_MiB);  // and then it works
  EXPECT_EQ(told.heard.size(), 1u);
  told.story.vanish(0);
  told.turn(1'100, 1_GiB);
  const auto records = told.audited();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0]["outcome"], "failed");
  EXPECT_EQ(records[0]["error"], "Operation not permitted");
  EXPECT_EQ(records[1]["outcome"], "evicted");
}

TEST(Reporter, WhatObserveModeWouldDoIsToldOnce) {
  Told told;
  told.story.pod("hog", 1_GiB);
  for (std::int64_t ms = 10; ms < 2'000; ms += 10) {
    const Bytes flapping = ms / 100 % 2 ? 50_MiB : 500_MiB;
    told.turn(ms, flapping, Result::kPretended);
  }
  EXPECT_EQ(told.counters().would_evict(Signal::kMemoryAvailable), 1u);
  EXPECT_EQ(told.counters().evicted(Signal::kMemoryAvailable), 0u);
  EXPECT_TRUE(told.heard.empty());
  const auto records = told.audited();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["outcome"], "would_evict");
}

TEST(Reporter, AFarewellOfAFormerLifeIsAuditedToo) {
  Told told;
  told.story.history.victims.push_back({.pod = test::sample_pod("hog", QosClass::kBestEffort),
                                        .cgroup = CgroupId{77},
                                        .reason = {},
                                        .phase = Victim::Phase::kKilled,
                                        .terminated_at = {},
                                        .killed_at = at_ms(5),
                                        .deadline = at_ms(1'000),
                                        .held = 1_GiB});
  told.turn(50, 500_MiB);
  const auto records = told.audited();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["outcome"], "evicted");
  EXPECT_EQ(records[0]["latency"]["signal_to_gone_ms"], 45.0);
}

TEST(Reporter, ATurnOfAConditionIsCountedAndShownAtOnce) {
  Told told;
  told.story.pod("web", 10_MiB, 100_MiB, kSystemCriticalPriority);
  told.story.reading(0).critical = true;
  told.turn(0, 500_MiB);
  EXPECT_FALSE(told.shown->node.latest()->conditions[0]);
  told.turn(1, 50_MiB);
  EXPECT_TRUE(told.shown->node.latest()->conditions[0]);
  EXPECT_EQ(told.counters().transitions[0], 1u);
}

TEST(Reporter, QuietTurnsAreShownFiveTimesASecond) {
  Told told;
  told.story.pod("web", 10_MiB, 100_MiB);
  std::int64_t changes = 0;
  Instant last;
  for (std::int64_t ms = 1'000; ms < 2'000; ms += 10) {
    told.turn(ms, 500_MiB);
    const Instant at = told.shown->node.latest()->at;
    if (at != last) ++changes;
    last = at;
  }
  EXPECT_EQ(changes, 5);
}

TEST(Reporter, AVerdictThatWantsACloserLookIsNotTold) {
  Told told;
  told.story.verdict.look_closer = true;
  told.reporter->tell(told.story.snapshot(0, 50_MiB, false), told.story.verdict, {});
  EXPECT_FALSE(told.shown->node.latest());
}

TEST(Reporter, AKillIsRecordedThoughTheSweepOfThatTurnFailed) {
  Told told;
  told.story.pod("hog", 1_GiB);
  Decision kill;
  kill.act = Act::kKill;
  kill.pod = told.story.reading(0).pod;
  kill.cgroup = told.story.reading(0).cgroup;
  const Outcome outcome{.decision = kill, .result = Result::kDone, .error = 0, .at = at_ms(900)};
  told.story.verdict.look_closer = true;  // the sweep failed, and memory is short
  told.reporter->tell(told.story.snapshot(1'000, 50_MiB, false), told.story.verdict, {&outcome, 1});
  EXPECT_EQ(told.heard.size(), 1u) << "an outcome is reported once, and never again";
  EXPECT_FALSE(told.shown->node.latest()) << "there is no verdict to show";
}

TEST(Reporter, ATickIsCountedByWhatWokeItAndHowDeepItLooked) {
  Told told;
  told.reporter->note({.wake = Wake::kPressure, .depth = Depth::kCgroups, .look = 1ms});
  told.reporter->note({.wake = Wake::kTimer, .depth = Depth::kNode, .look = 1us});
  told.reporter->note_missing_readings(7);
  told.turn(0, 500_MiB);
  EXPECT_EQ(told.counters().wakeups[static_cast<std::size_t>(Wake::kPressure)], 1u);
  EXPECT_EQ(told.counters().checks[1], 1u);
  EXPECT_EQ(told.counters().missing_readings, 7u);
  EXPECT_DOUBLE_EQ(told.counters().sweep.sum, 1e-3) << "only passes over the cgroups are sweeps";
}

TEST(Reporter, SteadyTurnsAllocateNothing) {
  Told told;
  for (int i = 0; i < 200; ++i) {
    const std::string name = "pod-with-a-name-too-long-for-a-small-string-" + std::to_string(i);
    told.names.paths[100 + static_cast<std::uint64_t>(i)] = "/kubepods.slice/" + name;
    told.story.pod(name, 10_MiB, 100_MiB);
  }
  const auto tell = [&](std::int64_t ms) {
    const Snapshot snapshot = told.story.snapshot(ms, 500_MiB);
    judge(told.story.policy, snapshot, told.story.history, told.story.verdict);
    const auto before = daemon::allocations_on_this_thread();
    told.reporter->note({.depth = Depth::kCgroups, .look = 1ms});
    told.reporter->tell(snapshot, told.story.verdict, {});
    return daemon::allocations_on_this_thread() - before;
  };
  std::int64_t ms = 0;
  for (int warm = 0; warm < 8; ++warm, ms += 1'000)
    tell(ms);
  for (int turn = 0; turn < 20; ++turn, ms += 1'000)
    EXPECT_EQ(tell(ms), 0u) << "turn " << turn;
  EXPECT_EQ(told.shown->cgroups.latest()->records.size(), 200u);
}

TEST(Reporter, ANewPolicyIsShownUnderItsOwnThresholds) {
  Told told;
  told.turn(0, 500_MiB);
  Policy next = policy_with(30s);
  next.mode = Mode::kObserve;
  told.reporter->adopt(next);
  told.story.history = carry_over(told.story.policy, told.story.history, next);
  told.story.policy = next;
  told.turn(1'000, 500_MiB);
  const auto node = told.shown->node.latest();
  EXPECT_EQ(node->mode, Mode::kObserve);
  ASSERT_EQ(node->thresholds.size(), 1u);
  EXPECT_EQ(node->thresholds[0].grace, 30s);
}

TEST(CgroupTable, PathsAreKeptWhileTheCgroupsStayAndLookedUpWhenTheyChange) {
  test::SampleNames names;
  names.paths = {{1, "/"}, {2, "/a.slice"}};
  std::vector<hr_record> records{unknown_record(1, 0), unknown_record(2, 1)};
  Snapshot snapshot;
  snapshot.cgroups = records;
  CgroupTable first, second, third;
  fill(first, nullptr, snapshot, &names);
  names.paths.clear();
  fill(second, &first, snapshot, &names);
  EXPECT_EQ(second.path(1), "/a.slice");
  records[1].id = 3;
  names.paths = {{1, "/"}, {3, "/b.slice"}};
  snapshot.cgroups = records;
  fill(third, &second, snapshot, &names);
  EXPECT_EQ(third.path(0), "/");
  EXPECT_EQ(third.path(1), "/b.slice");
}

TEST(CgroupTable, ANameLearntLateIsFilledIn) {
  test::SampleNames names;
  const std::vector<hr_record> records{unknown_record(1, 0)};
  Snapshot snapshot;
  snapshot.cgroups = records;
  CgroupTable first, second;
  fill(first, nullptr, snapshot, &names);
  EXPECT_EQ(first.path(0), "");
  names.paths[1] = "/late";
  fill(second, &first, snapshot, &names);
  EXPECT_EQ(second.path(0), "/late");
}

}  // namespace
}  // namespace headroom::report
