// SPDX-License-Identifier: Apache-2.0
// The actuator on real cgroups of the running kernel.
#include "act/host_actuator.h"

#include "base/cgroup_directory.h"
#include "base/process_stat.h"
#include "daemon/turn/allocation_count.h"
#include "support/eventually.h"
#include "support/fake_cgroupfs.h"
#include "support/test_cgroup.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::act {
namespace {

using test::TestCgroup;
using test::wait_for;

Instant stopped_clock() {
  return Instant(std::chrono::seconds(7));
}

PodReading reading_of(const TestCgroup& cgroup) {
  return PodReading{.pod = std::make_shared<Pod>(),
                    .cgroup = cgroup.id(),
                    .record = nullptr,
                    .memory_request = {},
                    .critical = false};
}

Decision decide(Act act, CgroupId cgroup) {
  Decision decision;
  decision.act = act;
  decision.cgroup = cgroup;
  decision.pod = std::make_shared<Pod>();
  return decision;
}

class HostActuatorTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::writable_cgroup2()) GTEST_SKIP() << "needs root and a writable cgroup v2 mount";
  }
  HostActuator actuator_for(const TestCgroup& cgroup) {
    HostActuator actuator([&cgroup](CgroupId) { return cgroup.directory(); }, &stopped_clock);
    const PodReading pod = reading_of(cgroup);
    actuator.update_kill_fds({&pod, 1});
    return actuator;
  }
};

TEST_F(HostActuatorTest, KillsEverythingInAndBelowTheCgroup) {
  TestCgroup pod("kill");
  TestCgroup container(pod, "container");
  const pid_t above = pod.spawn_sleeping_child(), below = container.spawn_sleeping_child();
  auto actuator = actuator_for(pod);
  const auto before = daemon::thread_allocation_count();
  const Decision decision = decide(Act::kKill, pod.id());
  const auto decided = daemon::thread_allocation_count();
  const Outcome outcome = actuator.act(decision);
  EXPECT_EQ(daemon::thread_allocation_count(), decided) << "the kill allocates nothing";
  EXPECT_GT(decided, before) << "the counter counts";
  EXPECT_EQ(outcome.result, Outcome::Result::kDone);
  EXPECT_EQ(outcome.at, stopped_clock());
  for (const pid_t child : {above, below}) {
    const auto status = wait_for(child, 5000);
    ASSERT_TRUE(status);
    EXPECT_EQ(WTERMSIG(*status), SIGKILL);
  }
}

// A slice whose services have ended, and are to be started again. Plain files: there is no process.
TEST(HostActuatorRestore, OfAnEmptyCgroupItsMemoryHighIsRestored) {
  const test::FakeCgroupfs cgroups(
      {.name = "", .children = {{.name = "pod", .files = {{"memory.high", "4194304"}}}}});
  const std::string path = cgroups.root() / "pod";
  const Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const CgroupId cgroup{cgroups.id("pod")};
  const auto overrides = std::make_shared<MemoryHighOverrides>(
      cgroups.root(), [](const MemoryHighOverrides::Found&) { return Result<>(); });
  ASSERT_EQ(overrides->override_high(cgroup, directory.get(), Bytes{2'097'152}), 0);
  ASSERT_EQ(number_at(directory.get(), "memory.high"), 2'097'152);
  HostActuator actuator([](CgroupId) { return -1; }, &stopped_clock);
  actuator.set_memory_high_overrides(overrides);
  EXPECT_EQ(actuator.act(decide(Act::kRestoreMemoryHigh, cgroup)).result,
            Outcome::Result::kStarted);
  std::vector<Outcome> ended;
  ASSERT_TRUE(test::eventually([&] {
    actuator.collect(ended);
    return !ended.empty();
  }));
  EXPECT_EQ(ended[0].result, Outcome::Result::kDone);
  EXPECT_EQ(ended[0].error, 0);
  EXPECT_EQ(number_at(directory.get(), "memory.high"), 4'194'304);
}

TEST_F(HostActuatorTest, TerminatesWithSigtermOnly) {
  TestCgroup pod("terminate");
  TestCgroup container(pod, "container");
  const pid_t polite = container.spawn_sleeping_child();
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t deaf = container.spawn([&] {
    std::signal(SIGTERM, SIG_IGN);
    if (::write(ready[1], "r", 1) != 1) ::_exit(1);
    for (;;)
      ::pause();
  });
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  auto actuator = actuator_for(pod);
  EXPECT_EQ(actuator.act(decide(Act::kTerminate, pod.id())).result, Outcome::Result::kDone);
  const auto status = wait_for(polite, 5000);
  ASSERT_TRUE(status);
  EXPECT_EQ(WTERMSIG(*status), SIGTERM);
  EXPECT_FALSE(wait_for(deaf, 50));
  EXPECT_EQ(actuator.act(decide(Act::kKill, pod.id())).result, Outcome::Result::kDone);
  ASSERT_TRUE(wait_for(deaf, 5000));
}

TEST_F(HostActuatorTest, AnEmptyCgroupIsGone) {
  TestCgroup pod("empty");
  auto actuator = actuator_for(pod);
  EXPECT_EQ(actuator.act(decide(Act::kKill, pod.id())).result, Outcome::Result::kGone);
  EXPECT_EQ(actuator.act(decide(Act::kTerminate, pod.id())).result, Outcome::Result::kGone);
}

// The path is reused by another cgroup between arming and killing: the new one is not touched.
TEST_F(HostActuatorTest, ANewCgroupOfTheSameNameIsNotKilled) {
  auto first = std::make_unique<TestCgroup>("reused");
  first->spawn_sleeping_child();
  auto actuator = actuator_for(*first);
  const Decision decision = decide(Act::kKill, first->id());
  const Decision gently = decide(Act::kTerminate, first->id());
  first->remove();
  TestCgroup second("reused");
  const pid_t bystander = second.spawn_sleeping_child();
  for (const Decision& late : {decision, gently}) {
    const Outcome outcome = actuator.act(late);
    EXPECT_NE(outcome.result, Outcome::Result::kDone);
  }
  EXPECT_FALSE(wait_for(bystander, 50));
}

// --- parts of a pod ----------------------------------------------------------------------------

ProcessIdentity name_of(pid_t pid) {
  const auto stat = process_stat(pid);
  return stat ? stat->name : ProcessIdentity{};
}

// A pod with two containers, a process in each.
struct TwoContainers {
  TestCgroup pod{"parts"};
  TestCgroup app{pod, "app"}, sidecar{pod, "sidecar"};
  pid_t in_app = app.spawn_sleeping_child(), in_sidecar = sidecar.spawn_sleeping_child();
  PodParts parts{.parts = {{.cgroup = app.id()}, {.cgroup = sidecar.id()}},
                 .largest = ProcessReading{.name = name_of(in_app), .cgroup = app.id(), .held = {}},
                 .stalled = {}};
  HostActuator actuator{[this](CgroupId id) {
                          for (const TestCgroup* each : {&pod, &app, &sidecar})
                            if (each->id() == id) return each->directory();
                          return -1;
                        },
                        &stopped_clock};

  TwoContainers() {
    PodReading reading = reading_of(pod);
    reading.parts = &parts;
    actuator.update_kill_fds({&reading, 1});
  }
  Decision of_part(Act act, Part part) const {
    Decision decision = decide(act, pod.id());
    decision.part = part;
    return decision;
  }
  Part container() const { return {.unit = EvictionUnit::kContainer, .cgroup = app.id()}; }
  Part process() const {
    return {.unit = EvictionUnit::kProcess, .cgroup = app.id(), .process = name_of(in_app)};
  }
};

TEST_F(HostActuatorTest, OneContainerOfAPodIsKilledAndTheOtherLives) {
  TwoContainers two;
  const Decision decision = two.of_part(Act::kKill, two.container());
  const auto decided = daemon::thread_allocation_count();
  EXPECT_EQ(two.actuator.act(decision).result, Outcome::Result::kDone);
  EXPECT_EQ(daemon::thread_allocation_count(), decided) << "the kill allocates nothing";
  EXPECT_TRUE(wait_for(two.in_app, 5000));
  EXPECT_FALSE(wait_for(two.in_sidecar, 50));
}

TEST_F(HostActuatorTest, OneProcessIsKilledAndItsExitIsReported) {
  TwoContainers two;
  const pid_t neighbour = two.app.spawn_sleeping_child();
  const Decision decision = two.of_part(Act::kKill, two.process());
  std::vector<Outcome> ended;
  two.actuator.collect(ended);
  EXPECT_TRUE(ended.empty());
  const auto decided = daemon::thread_allocation_count();
  EXPECT_EQ(two.actuator.act(decision).result, Outcome::Result::kDone);
  EXPECT_EQ(daemon::thread_allocation_count(), decided) << "the kill allocates nothing";
  const auto status = wait_for(two.in_app, 5000);
  ASSERT_TRUE(status);
  EXPECT_EQ(WTERMSIG(*status), SIGKILL);
  two.actuator.collect(ended);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].result, Outcome::Result::kGone);
  EXPECT_TRUE(ended[0].decision.part.is(decision.part));
  two.actuator.collect(ended);
  EXPECT_TRUE(ended.empty()) << "reported once";
  EXPECT_FALSE(wait_for(neighbour, 50));
  EXPECT_FALSE(wait_for(two.in_sidecar, 50));
}

TEST_F(HostActuatorTest, AnotherProcessWithTheSamePidLives) {
  TwoContainers two;
  Part other = two.process();
  ++other.process.started;
  EXPECT_EQ(two.actuator.act(two.of_part(Act::kKill, other)).result, Outcome::Result::kGone);
  EXPECT_FALSE(wait_for(two.in_app, 50));
}

TEST_F(HostActuatorTest, AfterARestartAProcessIsFoundByItsName) {
  TwoContainers two;
  HostActuator fresh([](CgroupId) { return -1; }, &stopped_clock);
  EXPECT_EQ(fresh.act(two.of_part(Act::kKill, two.process())).result, Outcome::Result::kDone);
  EXPECT_TRUE(wait_for(two.in_app, 5000));
  EXPECT_EQ(fresh.act(two.of_part(Act::kKill, two.process())).result, Outcome::Result::kGone);
}

TEST_F(HostActuatorTest, RefusesADirectoryOfAnotherCgroup) {
  TestCgroup right("right");
  TestCgroup wrong("wrong");
  EXPECT_FALSE(open_kill_fds(right.id(), wrong.directory()));
  EXPECT_TRUE(open_kill_fds(right.id(), right.directory()));
}

TEST_F(HostActuatorTest, ACgroupWithoutKillFdsIsAFailure) {
  HostActuator actuator([](CgroupId) { return -1; }, &stopped_clock);
  TestCgroup pod("unarmed");
  const PodReading reading = reading_of(pod);
  actuator.update_kill_fds({&reading, 1});
  EXPECT_EQ(actuator.missing(), 1u);
  EXPECT_EQ(actuator.act(decide(Act::kKill, pod.id())).result, Outcome::Result::kFailed);
}

TEST_F(HostActuatorTest, KeepsListedKillFdsAndClosesTheOthers) {
  TestCgroup one("one");
  TestCgroup two("two");
  HostActuator actuator(
      [&](CgroupId id) { return id == one.id() ? one.directory() : two.directory(); },
      &stopped_clock);
  std::vector<PodReading> pods{reading_of(one), reading_of(two)};
  actuator.update_kill_fds(pods);
  EXPECT_EQ(actuator.kill_fds(), 2u);
  pods.pop_back();
  actuator.update_kill_fds(pods);
  EXPECT_EQ(actuator.kill_fds(), 1u);
}

}  // namespace
}  // namespace headroom::act
