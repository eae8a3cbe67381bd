// SPDX-License-Identifier: Apache-2.0
// A write to cgroup.kill that does not return: the processes are killed all the same.
#include "act/kill/kill_fallback.h"

#include "base/clock.h"
#include "support/test_cgroup.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <csignal>

#include <gtest/gtest.h>

namespace headroom::act {
namespace {

using test::TestCgroup;
using test::wait_for;
using test::writable_cgroup2;

bool was_killed(pid_t child, int milliseconds) {
  const auto status = wait_for(child, milliseconds);
  return status && WIFSIGNALED(*status) && WTERMSIG(*status) == SIGKILL;
}

TEST(KillFallback, KillsWhatAWriteThatHangsWouldHaveKilled) {
  if (!writable_cgroup2()) GTEST_SKIP() << "no writable cgroup v2";
  TestCgroup pod("kill-fallback");
  TestCgroup container(pod, "container");
  TestCgroup other("kill-fallback-other");
  const pid_t first = pod.spawn_sleeping_child();
  const pid_t second = container.spawn_sleeping_child();
  const pid_t bystander = other.spawn_sleeping_child();
  KillFallback fallback(&observe::now);
  const Instant began = observe::now();
  fallback.begin(pod.directory());
  EXPECT_TRUE(was_killed(first, 2000));
  EXPECT_TRUE(was_killed(second, 2000));
  const Instant both_gone = observe::now();
  // The write is still under way: what is forked now goes as well.
  EXPECT_TRUE(was_killed(container.spawn_sleeping_child(), 2000));
  fallback.end();
  EXPECT_EQ(fallback.used(), 1u);
  ASSERT_TRUE(fallback.sent_before_write());
  EXPECT_GE(*fallback.sent_before_write(), began + KillFallback::kPatience);
  EXPECT_LT(*fallback.sent_before_write(), both_gone) << "the time of the first SIGKILL";
  EXPECT_FALSE(wait_for(bystander, 50));
  const pid_t later = container.spawn_sleeping_child();
  EXPECT_FALSE(wait_for(later, 50)) << "the write has returned";
}

TEST(KillFallback, LeavesAWriteThatReturnsAlone) {
  if (!writable_cgroup2()) GTEST_SKIP() << "no writable cgroup v2";
  TestCgroup pod("kill-quick");
  const pid_t child = pod.spawn_sleeping_child();
  KillFallback fallback(&observe::now);
  fallback.begin(pod.directory());
  fallback.end();
  EXPECT_FALSE(wait_for(child, 50));
  EXPECT_EQ(fallback.used(), 0u);
  EXPECT_FALSE(fallback.sent_before_write());
}

TEST(KillFallback, TheResultIsThatOfTheWrite) {
  if (!writable_cgroup2()) GTEST_SKIP() << "no writable cgroup v2";
  TestCgroup pod("kill-result");
  const pid_t child = pod.spawn_sleeping_child();
  const Fd kill(::openat(pod.directory(), "cgroup.kill", O_WRONLY | O_CLOEXEC));
  KillFallback fallback(&observe::now);
  EXPECT_EQ(fallback.kill(pod.directory(), kill.get()), 1);
  EXPECT_TRUE(was_killed(child, 2000));
  errno = 0;
  EXPECT_EQ(fallback.kill(pod.directory(), -1), -1);
  EXPECT_EQ(errno, EBADF);
}

}  // namespace
}  // namespace headroom::act
