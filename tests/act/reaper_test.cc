// SPDX-License-Identifier: Apache-2.0
// The releaser on real cgroups of the running kernel; how fast memory comes back, the lab shows.
#include "act/kill/reaper.h"

#include "base/clock.h"
#include "daemon/turn/allocation_count.h"
#include "support/test_cgroup.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::act {
namespace {

using namespace std::chrono_literals;
using test::TestCgroup;
using test::wait_for;

bool within(std::chrono::milliseconds limit, const std::function<bool()>& true_now) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (std::chrono::steady_clock::now() < until) {
    if (true_now()) return true;
    std::this_thread::sleep_for(5ms);
  }
  return true_now();
}

void kill_all(const TestCgroup& cgroup) {
  const Fd knob(::openat(cgroup.directory(), "cgroup.kill", O_WRONLY | O_CLOEXEC));
  ASSERT_EQ(::write(knob.get(), "1", 1), 1);
}

bool may_have_real_time() {
  bool may = false;
  std::thread([&] { may = raise_this_thread_to_realtime(); }).join();
  return may;
}

// A process of two threads that wait until they are killed.
class ThreadedChild {
 public:
  ThreadedChild() : pid_(::fork()) {
    if (pid_ > 0) return;
    std::thread([] { ::pause(); }).detach();
    ::pause();
    ::_exit(1);
  }
  ~ThreadedChild() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

  // Of each thread, once there are two.
  std::vector<int> policies() const {
    std::vector<int> seen;
    within(5s, [&] {
      seen.clear();
      for (const auto& task :
           std::filesystem::directory_iterator("/proc/" + std::to_string(pid_) + "/task"))
        seen.push_back(::sched_getscheduler(std::stoi(task.path().filename())));
      return seen.size() == 2;
    });
    return seen;
  }

 private:
  pid_t pid_;
};

class ReaperTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::writable_cgroup2()) GTEST_SKIP() << "needs root and a writable cgroup v2 mount";
  }
};

TEST_F(ReaperTest, AssistsKilledProcessesWithoutAllocating) {
  TestCgroup pod("releaser");
  TestCgroup container(pod, "container");
  const pid_t child = container.spawn_sleeping_child();
  Reaper reaper;
  kill_all(pod);
  const auto before = daemon::thread_allocation_count();
  reaper.assist(pod.directory());
  EXPECT_EQ(daemon::thread_allocation_count(), before);
  EXPECT_TRUE(within(5s, [&] { return reaper.counters().limits_lifted == 1; }));
  EXPECT_TRUE(wait_for(child, 5000));
}

TEST_F(ReaperTest, LivingProcessesAreNeverReaped) {
  TestCgroup pod("releaser-alive");
  pod.spawn_sleeping_child();
  Reaper reaper;
  reaper.assist(pod.directory());
  EXPECT_TRUE(within(5s, [&] { return reaper.counters().limits_lifted == 1; }));
  std::this_thread::sleep_for(Reaper::kReapDelay * 4);
  EXPECT_EQ(reaper.counters().reaped, 0u) << "the kernel refuses: it was sent no SIGKILL";
}

// How often a thread of this process has waited; 0: there is none of this name.
std::uint64_t waits_of_thread(const std::string& name) {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string comm, word;
    std::getline(std::ifstream(task.path() / "comm"), comm);
    if (comm != name) continue;
    std::ifstream status(task.path() / "status");
    for (std::uint64_t waits = 0; status >> word;)
      if (word == "voluntary_ctxt_switches:" && status >> waits) return waits;
  }
  return 0;
}

TEST_F(ReaperTest, SleepsWhileAProcessExits) {
  TestCgroup pod("releaser-slow");
  pod.spawn_sleeping_child();  // and is not killed: nothing exits as slowly
  Reaper reaper;
  reaper.assist(pod.directory());
  EXPECT_TRUE(within(5s, [&] { return reaper.counters().limits_lifted == 1; }));
  std::this_thread::sleep_for(Reaper::kReapDelay * 4);
  const std::uint64_t before = waits_of_thread("hr-release");
  ASSERT_GT(before, 0u);
  std::this_thread::sleep_for(500ms);
  EXPECT_LE(waits_of_thread("hr-release") - before, 2u);
}

TEST_F(ReaperTest, EveryThreadOfAKilledProcessHasRealTimePriority) {
  if (!may_have_real_time())
    GTEST_SKIP() << "no real-time scheduling here: CAP_SYS_NICE, RT_GROUP_SCHED";
  const ThreadedChild child;  // it lives, for there to be something to look at
  ASSERT_EQ(child.policies(), (std::vector<int>{SCHED_OTHER, SCHED_OTHER}));
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, child.pid(), 0)));
  Reaper reaper;
  reaper.assist_process(process.get());
  EXPECT_TRUE(within(5s, [&] { return reaper.counters().boosted == 1; }));
  EXPECT_EQ(child.policies(), (std::vector<int>{SCHED_RR, SCHED_RR}));
}

TEST_F(ReaperTest, AProcessStartedAfterTheKillKeepsItsPriority) {
  if (!may_have_real_time())
    GTEST_SKIP() << "no real-time scheduling here: CAP_SYS_NICE, RT_GROUP_SCHED";
  TestCgroup pod("releaser-restarted");
  const pid_t next = pod.spawn_sleeping_child();  // as of a service that was restarted at once
  Reaper reaper;
  reaper.assist(pod.directory(), observe::now() - 10s);
  ASSERT_TRUE(within(5s, [&] { return reaper.counters().limits_lifted == 1; }));
  EXPECT_EQ(reaper.counters().boosted, 0u);
  EXPECT_EQ(::sched_getscheduler(next), SCHED_OTHER);
  reaper.assist(pod.directory(), observe::now());
  ASSERT_TRUE(within(5s, [&] { return reaper.counters().limits_lifted == 2; }));
  EXPECT_EQ(reaper.counters().boosted, 1u) << "one that was there at the kill is";
  EXPECT_EQ(::sched_getscheduler(next), SCHED_RR);
}

// As of a fork bomb, with the one that holds its memory among them.
TEST_F(ReaperTest, OfManyProcessesThoseWithTheMostMemoryAreBoosted) {
  if (!may_have_real_time())
    GTEST_SKIP() << "no real-time scheduling here: CAP_SYS_NICE, RT_GROUP_SCHED";
  TestCgroup pod("releaser-bomb");
  const auto spawn_small = [&](std::size_t count) {
    std::vector<pid_t> children;
    while (children.size() < count)
      children.push_back(pod.spawn_sleeping_child());
    return children;
  };
  const std::vector<pid_t> before = spawn_small(Reaper::kMaxHelped);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t large = pod.spawn([&] {
    const std::vector<char> held(std::size_t{64} << 20, 'x');
    (void)!::write(ready[1], "r", 1);
    ::pause();
  });
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  const std::vector<pid_t> after = spawn_small(8);
  Reaper reaper;
  reaper.assist(pod.directory());
  ASSERT_TRUE(within(10s, [&] { return reaper.counters().limits_lifted == 1; }));
  EXPECT_EQ(reaper.counters().boosted, Reaper::kMaxHelped);
  EXPECT_EQ(::sched_getscheduler(large), SCHED_RR);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(ReaperTest, AnExitedProcessIsNotBoosted) {
  std::optional<Fd> process;
  {
    const ThreadedChild child;
    process.emplace(static_cast<int>(::syscall(SYS_pidfd_open, child.pid(), 0)));
  }
  EXPECT_FALSE(raise_to_realtime(process->get()));
}

TEST_F(ReaperTest, ARemovedCgroupIsNoError) {
  Reaper reaper;
  {
    TestCgroup pod("releaser-gone");
    const Fd held(::fcntl(pod.directory(), F_DUPFD_CLOEXEC, 0));
    pod.remove();
    reaper.assist(held.get());
  }
  EXPECT_TRUE(within(5s, [&] { return reaper.counters().limits_lifted == 1; }));
  EXPECT_EQ(reaper.counters().reaped, 0u);
}

TEST_F(ReaperTest, RequestsBeyondItsCapacityAreCountedAndDoNotBlock) {
  TestCgroup pod("releaser-many");
  Reaper reaper;
  constexpr std::uint64_t kMany = 2000;
  for (std::uint64_t i = 0; i < kMany; ++i)
    reaper.assist(pod.directory());
  EXPECT_TRUE(within(10s, [&] {
    const ReaperCounts counters = reaper.counters();
    return counters.limits_lifted + counters.dropped == kMany;
  }));
}

}  // namespace
}  // namespace headroom::act
