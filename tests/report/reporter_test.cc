// SPDX-License-Identifier: Apache-2.0
// The reporter along stories of the judge: what is counted, written and shown, and what it costs.
#include "report/reporter.h"

#include "daemon/turn/allocation_count.h"
#include "report/sample.h"
#include "support/story.h"

#include <unistd.h>

#include <algorithm>
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

// A story given to a reporter, turn by turn, as the engine does.
class ReporterFixture {
 public:
  explicit ReporterFixture(Policy policy = policy_with(0s))
      : story(policy), views(std::make_shared<PublishedViews>()) {
    std::filesystem::remove(file_);
    reporter = std::make_unique<NodeReporter>(
        ReporterSetup{.views = views,
                      .policy = policy,
                      .audit_log = file_,
                      .names = &names,
                      .on_evicted = [this](const Eviction& eviction) {
                        evicted_messages.push_back(eviction.message);
                      }});
  }
  ~ReporterFixture() { std::filesystem::remove(file_); }

  void turn(std::int64_t ms, std::optional<Bytes> available, Result result = Result::kDone,
            int error = 0) {
    const Snapshot snapshot = story.snapshot(ms, available);
    judge(story.policy, snapshot, story.history, story.verdict);
    outcomes.clear();
    for (const Decision& decision : story.verdict.decisions) {
      outcomes.push_back({decision, result, error, at_ms(ms)});
      record_outcome(outcomes.back(), story.verdict.after);
    }
    reporter->report_turn(snapshot, story.verdict, outcomes);
    story.history = story.verdict.after;
  }

  const Counters& counters() {
    reading_ = views->node.latest();
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
  std::shared_ptr<PublishedViews> views;
  std::unique_ptr<NodeReporter> reporter;
  std::vector<std::string> evicted_messages;
  std::vector<Outcome> outcomes;

 private:
  Published<NodeView>::ReadGuard reading_;
  const std::filesystem::path file_ =
      ::testing::TempDir() + "headroom-reporter-" + std::to_string(::getpid()) + ".jsonl";
};

TEST(Reporter, AnEvictionIsCountedReportedAndAuditedOnce) {
  ReporterFixture fixture;
  fixture.story.pod("hog", 1_GiB);
  fixture.story.pod("web", 200_MiB, 300_MiB);
  fixture.names.paths[100] = "/kubepods.slice/hog.slice";
  fixture.turn(5, 500_MiB);
  fixture.turn(15, 50_MiB);
  EXPECT_EQ(fixture.counters().evicted(Signal::kMemoryAvailable), 1u);
  ASSERT_EQ(fixture.evicted_messages.size(), 1u);
  EXPECT_EQ(fixture.evicted_messages[0],
            "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. ");
  fixture.story.record(0).populated = 0;
  fixture.story.record(0).memory_usage = 0;
  fixture.turn(100, 1_GiB);
  EXPECT_EQ(fixture.counters().victims_gone, 1u);
  EXPECT_EQ(fixture.counters().memory_returned, std::uint64_t{1} << 30);

  const auto records = fixture.audited();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["outcome"], "evicted");
  EXPECT_EQ(records[0]["pod"]["name"], "hog");
  EXPECT_EQ(records[0]["cgroup"]["path"], "/kubepods.slice/hog.slice");
  EXPECT_EQ(records[0]["ranking"].size(), 2u);
  EXPECT_EQ(records[0]["latency"]["crossing_to_decision_ms"], 10.0);
  EXPECT_EQ(records[0]["latency"]["signal_to_exit_ms"], 85.0);
}

// The audit log takes the record.
TEST(Reporter, TheEventOfAnEvictionsEndHasItsRecord) {
  ReporterFixture fixture;
  fixture.story.pod("hog", 1_GiB);
  fixture.turn(5, 500_MiB);
  fixture.turn(15, 50_MiB);
  fixture.story.record(0).populated = 0;
  fixture.story.record(0).memory_usage = 0;
  fixture.turn(100, 1_GiB);
  fixture.views->events.flush();
  const Json events = Json::parse(fixture.views->events.json(0)).at("events");
  const auto ended = std::find_if(events.begin(), events.end(), [](const Json& event) {
    return event.value("phase", "") == "ended";
  });
  ASSERT_NE(ended, events.end());
  EXPECT_EQ(ended->at("pod").at("name"), "hog");
  EXPECT_EQ(ended->at("outcome"), "evicted");
  EXPECT_EQ(ended->at("memory_returned"), (1_GiB).count);
  EXPECT_EQ(fixture.audited().size(), 1u);
}

TEST(Reporter, APodThatLosesAPartIsNotEvicted) {
  Policy policy = policy_with(0s);
  policy.eviction_unit = EvictionUnit::kContainer;
  ReporterFixture fixture(policy);
  fixture.story.pod("hog", 1_GiB);
  fixture.story.container(0, 500_MiB);
  fixture.turn(5, 500_MiB);
  fixture.turn(15, 50_MiB);
  EXPECT_EQ(fixture.counters().evicted(Signal::kMemoryAvailable), 0u);
  EXPECT_EQ(fixture.counters().part_kills[static_cast<std::size_t>(EvictionUnit::kContainer)][0],
            1u);
  EXPECT_TRUE(fixture.evicted_messages.empty()) << "no message says that the pod must go";
  fixture.story.parts(0).parts[0].populated = false;
  fixture.turn(100, 1_GiB);
  const auto records = fixture.audited();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["unit"], "container");
  EXPECT_EQ(records[0]["outcome"], "evicted");
  EXPECT_EQ(records[0]["predicted"]["release"], (500_MiB).count);
}

TEST(Reporter, TheMessageListsTheContainersOverTheirRequest) {
  ReporterFixture fixture;
  fixture.story.pod("hog", 1_GiB);
  fixture.story.pod("child", 1_GiB);  // its container's cgroup, below it
  fixture.story.record(1).parent_id = 100;
  fixture.names.paths[101] = "/kubepods.slice/hog.slice/app.service";
  auto hog = std::make_shared<Pod>(*fixture.story.reading(0).pod);
  hog->containers.emplace_back().name = "app";
  fixture.story.reading(0).pod = hog;
  fixture.story.reading(1).critical = true;
  fixture.turn(0, 500_MiB);
  fixture.turn(10, 50_MiB);
  ASSERT_EQ(fixture.evicted_messages.size(), 1u);
  EXPECT_EQ(fixture.evicted_messages[0],
            "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. "
            "Container app was using 1Gi, request is 0, has larger consumption of memory. ");
}

TEST(Reporter, AGraceEndingInAKillIsOneEviction) {
  ReporterFixture fixture(policy_with(1s));
  fixture.story.pod("hog", 1_GiB);
  for (std::int64_t ms = 0; ms <= 4'000; ms += 100)
    fixture.turn(ms, ms == 0 ? 500_MiB : 50_MiB);
  EXPECT_EQ(fixture.counters().evicted(Signal::kMemoryAvailable), 1u);
  fixture.story.remove_pod(0);
  fixture.turn(4'100, 1_GiB);
  const auto records = fixture.audited();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_NE(records[0]["instants_ns"]["terminated"], nullptr);
  EXPECT_NE(records[0]["instants_ns"]["killed"], nullptr);
  EXPECT_EQ(records[0]["instants_ns"]["signalled"], records[0]["instants_ns"]["terminated"]);
}

TEST(Reporter, ARepeatedFailureIsCountedEachTimeAndLoggedOnce) {
  ReporterFixture fixture;
  fixture.story.pod("hog", 1_GiB);
  for (std::int64_t ms = 10; ms < 1'000; ms += 10)
    fixture.turn(ms, 50_MiB, Result::kFailed, EPERM);
  EXPECT_GT(fixture.counters().evictions[0][static_cast<std::size_t>(Result::kFailed)], 50u);
  EXPECT_EQ(fixture.counters().evicted(Signal::kMemoryAvailable), 0u);
  EXPECT_TRUE(fixture.evicted_messages.empty());
  fixture.turn(1'000, 50_MiB);  // and then it works
  EXPECT_EQ(fixture.evicted_messages.size(), 1u);
  fixture.story.remove_pod(0);
  fixture.turn(1'100, 1_GiB);
  const auto records = fixture.audited();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0]["outcome"], "failed");
  EXPECT_EQ(records[0]["error"], "Operation not permitted");
  EXPECT_EQ(records[1]["outcome"], "evicted");
}

TEST(Reporter, ObserveModeLogsAnEvictionOnce) {
  ReporterFixture fixture;
  fixture.story.pod("hog", 1_GiB);
  for (std::int64_t ms = 10; ms < 2'000; ms += 10) {
    const Bytes flapping = ms / 100 % 2 ? 50_MiB : 500_MiB;
    fixture.turn(ms, flapping, Result::kDryRun);
  }
  EXPECT_EQ(fixture.counters().would_evict(Signal::kMemoryAvailable), 1u);
  EXPECT_EQ(fixture.counters().evicted(Signal::kMemoryAvailable), 0u);
  EXPECT_TRUE(fixture.evicted_messages.empty());
  const auto records = fixture.audited();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["outcome"], "would_evict");
}

TEST(Reporter, AnEvictionFromBeforeARestartIsAuditedToo) {
  ReporterFixture fixture;
  fixture.story.history.victims.push_back({.pod = test::sample_pod("hog", QosClass::kBestEffort),
                                           .cgroup = CgroupId{77},
                                           .reason = {},
                                           .phase = Victim::Phase::kKilled,
                                           .terminated_at = {},
                                           .killed_at = at_ms(5),
                                           .deadline = at_ms(1'000),
                                           .held = 1_GiB});
  fixture.turn(50, 500_MiB);
  const auto records = fixture.audited();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["outcome"], "evicted");
  EXPECT_EQ(records[0]["latency"]["signal_to_exit_ms"], 45.0);
}

TEST(Reporter, SwapRoomIsPublished) {
  ReporterFixture fixture;
  fixture.turn(0, 1_GiB);
  EXPECT_FALSE(fixture.views->node.latest()->swap_room);
  fixture.story.swap =
      SwapReading{.mem_available = (300_MiB).count, .disk = {.total = 1, .free = 0}};
  fixture.turn(10'000, 1_GiB);
  const auto node = fixture.views->node.latest();
  ASSERT_TRUE(node->swap_room);
  EXPECT_EQ(node->swap_room->available, (300_MiB).count);
}

TEST(Reporter, AConditionTransitionIsCountedAndPublishedAtOnce) {
  ReporterFixture fixture;
  fixture.story.pod("web", 10_MiB, 100_MiB, kSystemCriticalPriority);
  fixture.story.reading(0).critical = true;
  fixture.turn(0, 500_MiB);
  EXPECT_FALSE(fixture.views->node.latest()->conditions[0]);
  fixture.turn(1, 50_MiB);
  EXPECT_TRUE(fixture.views->node.latest()->conditions[0]);
  EXPECT_EQ(fixture.counters().transitions[0], 1u);
}

TEST(Reporter, TurnsWithoutChangesArePublishedFiveTimesASecond) {
  ReporterFixture fixture;
  fixture.story.pod("web", 10_MiB, 100_MiB);
  std::int64_t changes = 0;
  Instant last;
  for (std::int64_t ms = 1'000; ms < 2'000; ms += 10) {
    fixture.turn(ms, 500_MiB);
    const Instant at = fixture.views->node.latest()->at;
    if (at != last) ++changes;
    last = at;
  }
  EXPECT_EQ(changes, 5);
}

TEST(Reporter, AVerdictThatNeedsCgroupsIsNotReported) {
  ReporterFixture fixture;
  fixture.story.verdict.needs_cgroups = true;
  fixture.reporter->report_turn(fixture.story.snapshot(0, 50_MiB, false), fixture.story.verdict,
                                {});
  EXPECT_FALSE(fixture.views->node.latest());
}

TEST(Reporter, AKillIsRecordedThoughTheSweepOfThatTurnFailed) {
  ReporterFixture fixture;
  fixture.story.pod("hog", 1_GiB);
  Decision kill;
  kill.act = Act::kKill;
  kill.pod = fixture.story.reading(0).pod;
  kill.cgroup = fixture.story.reading(0).cgroup;
  const Outcome outcome{.decision = kill, .result = Result::kDone, .error = 0, .at = at_ms(900)};
  fixture.story.verdict.needs_cgroups = true;  // the sweep failed, and memory is short
  fixture.reporter->report_turn(fixture.story.snapshot(1'000, 50_MiB, false), fixture.story.verdict,
                                {&outcome, 1});
  EXPECT_EQ(fixture.evicted_messages.size(), 1u) << "an outcome is reported once, and never again";
  EXPECT_FALSE(fixture.views->node.latest()) << "there is no verdict to show";
}

TEST(Reporter, ATurnIsCountedByWakeSourceAndScope) {
  ReporterFixture fixture;
  fixture.reporter->record(
      {.wake = WakeSource::kPressure, .scope = SnapshotScope::kCgroups, .snapshot = 1ms});
  fixture.reporter->record(
      {.wake = WakeSource::kTimer, .scope = SnapshotScope::kNode, .snapshot = 1us});
  fixture.reporter->set_missing_readings(7);
  fixture.turn(0, 500_MiB);
  EXPECT_EQ(fixture.counters().wakeups[static_cast<std::size_t>(WakeSource::kPressure)], 1u);
  EXPECT_EQ(fixture.counters().checks[1], 1u);
  EXPECT_EQ(fixture.counters().missing_readings, 7u);
  EXPECT_DOUBLE_EQ(fixture.counters().sweep.sum, 1e-3) << "only passes over the cgroups are sweeps";
}

TEST(Reporter, SteadyTurnsAllocateNothing) {
  ReporterFixture fixture;
  for (int i = 0; i < 200; ++i) {
    const std::string name = "pod-with-a-name-too-long-for-a-small-string-" + std::to_string(i);
    fixture.names.paths[100 + static_cast<std::uint64_t>(i)] = "/kubepods.slice/" + name;
    fixture.story.pod(name, 10_MiB, 100_MiB);
  }
  const auto report_turn = [&](std::int64_t ms) {
    const Snapshot snapshot = fixture.story.snapshot(ms, 500_MiB);
    judge(fixture.story.policy, snapshot, fixture.story.history, fixture.story.verdict);
    const auto before = daemon::thread_allocation_count();
    fixture.reporter->record({.scope = SnapshotScope::kCgroups, .snapshot = 1ms});
    fixture.reporter->report_turn(snapshot, fixture.story.verdict, {});
    return daemon::thread_allocation_count() - before;
  };
  std::int64_t ms = 0;
  for (int warm = 0; warm < 8; ++warm, ms += 1'000)
    report_turn(ms);
  for (int turn = 0; turn < 20; ++turn, ms += 1'000)
    EXPECT_EQ(report_turn(ms), 0u) << "turn " << turn;
  EXPECT_EQ(fixture.views->cgroups.latest()->records.size(), 200u);
}

TEST(Reporter, ANewPolicyIsPublishedWithItsOwnThresholds) {
  ReporterFixture fixture;
  fixture.turn(0, 500_MiB);
  Policy next = policy_with(30s);
  next.mode = Mode::kObserve;
  fixture.reporter->reconfigure(next);
  fixture.story.history = carry_over(fixture.story.policy, fixture.story.history, next);
  fixture.story.policy = next;
  fixture.turn(1'000, 500_MiB);
  const auto node = fixture.views->node.latest();
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

TEST(CgroupTable, ANameReadLaterIsFilledIn) {
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
