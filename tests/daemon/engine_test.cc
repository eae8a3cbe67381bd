// SPDX-License-Identifier: Apache-2.0
// The engine with fake ports: one turn at a time.
#include "daemon/turn/engine.h"

#include "act/host_actuator.h"
#include "daemon/turn/allocation_count.h"
#include "support/story.h"

#include <stdexcept>
#include <utility>

#include <gtest/gtest.h>

namespace headroom::daemon {
namespace {

using namespace test;

struct FakeObserver final : Observer {
  explicit FakeObserver(Story& the_story) : story(the_story) {}
  Snapshot take_snapshot(SnapshotScope scope) override {
    if (std::exchange(fails, false)) throw std::runtime_error("the sweep failed");
    depths.push_back(scope);
    Snapshot snapshot = story.snapshot(ms, available, scope != SnapshotScope::kNode);
    snapshot.cgroups_changed = scope == SnapshotScope::kCgroups && changed;
    return snapshot;
  }
  Story& story;
  std::int64_t ms = 0;
  std::optional<Bytes> available = 2_GiB;
  bool changed = false;  // the tree, as reported once
  bool fails = false;    // the next snapshot
  void measure_disks() override { ++asked; }
  std::vector<SnapshotScope> depths;
  int asked = 0;
};

struct FakeActuator final : Actuator {
  void update_kill_fds(std::span<const PodReading> pods) override { armed = pods.size(); }
  Outcome act(const Decision& decision) override {
    ++acts;
    armed_when_acting = armed;
    return Outcome{.decision = decision, .result = result, .error = 0, .at = decision.decided_at};
  }
  void collect(std::vector<Outcome>& ended) override {
    ended = std::move(to_end);
    to_end.clear();
  }
  std::vector<Outcome> to_end;
  std::size_t armed = 0, armed_when_acting = 0, acts = 0;
  Outcome::Result result = Outcome::Result::kDone;
};

class EngineTest : public testing::Test {
 protected:
  static Policy policy() {
    Policy policy;
    policy.thresholds = {memory_below(200_MiB)};
    policy.mode = Mode::kEnforce;
    return policy;
  }
  Instant turn(std::int64_t ms, Bytes available) {
    observer.ms = ms;
    observer.available = available;
    observer.depths.clear();
    return take_turn(at_ms(ms));
  }
  Instant take_turn(Instant now) {
    engine.start(report::WakeSource::kTimer);
    engine.collect_outcomes();
    engine.observe_and_judge(now);
    engine.act();
    const Instant next = engine.plan();
    received += engine.outcomes().size();
    engine.outcomes_reported();
    victims = engine.verdict().after.victims.size();
    engine.commit();
    return next;
  }
  using Depths = std::vector<SnapshotScope>;

  Story story{policy()};
  FakeObserver observer{story};
  FakeActuator actuator;
  std::size_t received = 0, victims = 0;  // outcomes of all turns; victims after the latest
  inline static Duration spent{};         // CPU time
  Engine engine{policy(), observer, actuator,
                TurnMeter([] { return Instant{}; }, &thread_allocation_count),
                SweepSchedule([] { return spent; })};
};

TEST_F(EngineTest, SweepsOncePerPeriodAndReadsTheNodeInBetween) {
  turn(0, 2_GiB);
  EXPECT_EQ(observer.depths, Depths{SnapshotScope::kCgroups});
  turn(500, 2_GiB);
  EXPECT_EQ(observer.depths, Depths{SnapshotScope::kNode});
  turn(1000, 2_GiB);
  EXPECT_EQ(observer.depths, Depths{SnapshotScope::kCgroups});
}

TEST_F(EngineTest, LooksLessOftenWhereItWouldCostTooMuchUntilAThresholdIsCrossed) {
  engine.set_cpu_budget(0.1);
  turn(0, 210_MiB);
  spent += SweepSchedule::kLookCredit;
  EXPECT_LT(turn(10, 210_MiB), at_ms(60)) << "memory can be gone by then";
  spent += std::chrono::milliseconds(20);
  EXPECT_EQ(turn(100, 210_MiB), at_ms(210)) << "9 of 20 ms were earned since the latest look";
  Policy soft = policy();
  soft.thresholds[0].grace = std::chrono::milliseconds(40);
  engine.reconfigure(soft);
  turn(400, 100_MiB);
  spent += std::chrono::milliseconds(20);
  EXPECT_EQ(turn(410, 100_MiB), at_ms(440)) << "the end of the grace";
}

TEST_F(EngineTest, SweepsLessOftenWhereItWouldCostTooMuch) {
  engine.set_cpu_budget(0.1);
  turn(0, 2_GiB);
  EXPECT_EQ(engine.cost().sweep_period, std::chrono::seconds(1));
  spent += std::chrono::milliseconds(300);
  turn(1000, 2_GiB);
  EXPECT_EQ(engine.cost().sweep_period, std::chrono::seconds(3));
  turn(2000, 2_GiB);
  EXPECT_EQ(observer.depths, Depths{SnapshotScope::kNode});
  turn(3000, 100_MiB);
  EXPECT_EQ(observer.depths, (Depths{SnapshotScope::kNode, SnapshotScope::kDecision}))
      << "what is decided on is fresh";
  turn(4000, 2_GiB);
  EXPECT_EQ(engine.cost().sweep_period, std::chrono::seconds(1)) << "it is cheap again";
}

TEST_F(EngineTest, SweepsWhenAThresholdIsCrossedAndOpensKillFdsBeforeActing) {
  turn(0, 2_GiB);
  story.pod("born_since", 1_GiB);
  turn(500, 100_MiB);
  EXPECT_EQ(observer.depths, (Depths{SnapshotScope::kNode, SnapshotScope::kDecision}));
  EXPECT_EQ(actuator.acts, 1u);
  EXPECT_EQ(actuator.armed_when_acting, 1u);
  EXPECT_EQ(received, 1u);
  EXPECT_EQ(victims, 1u) << "the report shows what the acts have taught";
}

TEST_F(EngineTest, NoPodIsChosenFromAPassThatSkippedIdleCgroups) {
  story.pod("hog", 1_GiB);
  observer.changed = true;
  turn(0, 100_MiB);
  EXPECT_EQ(observer.depths, (Depths{SnapshotScope::kCgroups, SnapshotScope::kDecision}));
  EXPECT_EQ(actuator.acts, 1u) << "what the first look decided is void";
  EXPECT_TRUE(engine.snapshot().cgroups_changed) << "but what it found new is not";
}

TEST_F(EngineTest, AFailedActionIsRetried) {
  story.pod("hog", 1_GiB);
  actuator.result = Outcome::Result::kFailed;
  turn(0, 100_MiB);
  turn(5, 100_MiB);
  EXPECT_EQ(actuator.acts, 2u);
}

TEST_F(EngineTest, RecordsAndReportsTheEndOfAsyncActions) {
  story.pod("db", 1_GiB);
  Outcome end;
  end.decision.act = Act::kReclaim;
  end.decision.reason.signal = Signal::kNodeFsAvailable;
  end.result = Outcome::Result::kDone;
  end.at = at_ms(400);
  actuator.to_end = {end};
  turn(500, 2_GiB);
  EXPECT_EQ(engine.history().reclaims[static_cast<std::size_t>(Signal::kNodeFsAvailable)].ended,
            Instant{})
      << "used up: no threshold of it is crossed";
  EXPECT_GT(engine.history().disk_settles_at, at_ms(400)) << "it was learnt";
  EXPECT_EQ(received, 1u);
  turn(600, 2_GiB);
  EXPECT_EQ(received, 1u) << "reported once";
  EXPECT_EQ(observer.asked, 0) << "no disk is short";
}

// The sentinel's kill has no other way into the audit log.
TEST_F(EngineTest, AnOutcomeOfATurnWhoseSweepFailsIsReportedByTheNext) {
  Outcome kill;
  kill.decision.act = Act::kKill;
  kill.decision.pod = story.reading(story.pod("hog", 1_GiB)).pod;
  kill.result = Outcome::Result::kDone;
  actuator.to_end = {kill};
  observer.fails = true;
  EXPECT_THROW(turn(500, 2_GiB), std::runtime_error);
  EXPECT_EQ(received, 0u);
  turn(600, 2_GiB);
  EXPECT_EQ(received, 1u);
  turn(700, 2_GiB);
  EXPECT_EQ(received, 1u) << "once";
}

TEST_F(EngineTest, ActionsStartedInEnforceModeAreCollectedInObserveMode) {
  Outcome end;
  end.decision.act = Act::kReclaim;
  end.result = Outcome::Result::kDone;
  end.at = at_ms(400);
  act::DryActuator dry([] { return Instant{}; }, &actuator);
  actuator.to_end = {end};
  engine.use(dry);
  turn(500, 2_GiB);
  EXPECT_EQ(received, 1u);
  turn(600, 2_GiB);
  EXPECT_EQ(received, 1u);
}

// A report that throws, for lack of memory, ends the turn before its history is committed.
TEST_F(EngineTest, ATurnThatIsNotCommittedIsNotForgotten) {
  story.pod("hog", 1_GiB);
  observer.available = 100_MiB;
  engine.start(report::WakeSource::kTimer);
  engine.collect_outcomes();
  engine.observe_and_judge(at_ms(0));
  engine.act();
  EXPECT_EQ(actuator.acts, 1u);
  turn(100, 100_MiB);
  EXPECT_EQ(engine.history().victims.size(), 1u);
  EXPECT_EQ(actuator.acts, 1u) << "the pod that was killed is not killed again";
}

TEST_F(EngineTest, ResumesAGracePeriodAfterARestart) {
  Victim victim;
  victim.pod = story.reading(story.pod("web", 1_GiB)).pod;
  victim.cgroup = story.reading(0).cgroup;
  victim.phase = Victim::Phase::kTerminating;
  victim.deadline = at_ms(5000);
  engine.resume({victim});
  turn(4999, 2_GiB);
  EXPECT_EQ(actuator.acts, 0u);
  turn(5000, 2_GiB);
  EXPECT_EQ(actuator.acts, 1u);
}

// The kill path of the real engine and judge: snapshot, judge, second snapshot, judge, act.
TEST_F(EngineTest, TheTurnThatKillsAllocatesNothing) {
  for (int i = 0; i < 300; ++i)
    story.pod("p" + std::to_string(i), Bytes{1 << 20});
  turn(0, 2_GiB);
  turn(500, 2_GiB);
  observer.depths.reserve(8);
  observer.ms = 600;
  observer.available = 100_MiB;
  const auto before = thread_allocation_count();
  take_turn(at_ms(600));
  const auto after = thread_allocation_count();
  EXPECT_EQ(actuator.acts, 1u);
  EXPECT_EQ(after - before, 0u);
  EXPECT_EQ(engine.cost().allocations, 0u);
  EXPECT_EQ(engine.cost().scope, SnapshotScope::kCgroups);
  EXPECT_GT(thread_allocation_count(), 0u) << "the counter counts";
}

}  // namespace
}  // namespace headroom::daemon
