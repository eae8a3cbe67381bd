// SPDX-License-Identifier: Apache-2.0
// The lock on the root of the cgroup v2 mount, on the running kernel.
#include "daemon/state/enforce_lock.h"

#include "support/test_cgroup.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace headroom::daemon {
namespace {

// A cgroup of the test stands for the root: a daemon on this machine may have the lock of that one.
class EnforceLockTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::writable_cgroup2()) GTEST_SKIP() << "needs root and a writable cgroup v2 mount";
    cgroup.emplace("enforce-lock");
  }
  std::optional<test::TestCgroup> cgroup;
};

TEST_F(EnforceLockTest, TheSecondIsRejectedUntilTheFirstExits) {
  {
    const auto first = EnforceLock::take(cgroup->path());
    ASSERT_TRUE(first) << first.error().what;
    const auto second = EnforceLock::take(cgroup->path());
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, EWOULDBLOCK);
    EXPECT_NE(second.error().what.find("with pid " + std::to_string(::getpid())), std::string::npos)
        << second.error().what;
    EXPECT_TRUE(enforce_lock_holder(cgroup->path()));
  }
  EXPECT_FALSE(enforce_lock_holder(cgroup->path()));
  EXPECT_TRUE(EnforceLock::take(cgroup->path()));
}

TEST_F(EnforceLockTest, ItHoldsAcrossMountNamespaces) {
  const auto first = EnforceLock::take(cgroup->path());
  ASSERT_TRUE(first) << first.error().what;
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWNS) != 0) ::_exit(2);
    ::_exit(EnforceLock::take(cgroup->path()) ? 1 : 0);
  }
  const auto status = test::wait_for(child, 5000);
  ASSERT_TRUE(status);
  if (WEXITSTATUS(*status) == 2) GTEST_SKIP() << "may not make a mount namespace";
  EXPECT_EQ(WEXITSTATUS(*status), 0);
}

// A container that has a cgroup namespace of its own takes its cgroup for the root.
TEST_F(EnforceLockTest, TheRootOfACgroupNamespaceIsRefused) {
  const auto refused = EnforceLock::take_for_node(cgroup->path());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("cgroup namespace"), std::string::npos)
      << refused.error().what;
  EXPECT_FALSE(enforce_lock_holder(cgroup->path())) << "the lock was not taken";
  EXPECT_NE(::access((*test::writable_cgroup2() + "/cgroup.type").c_str(), F_OK), 0)
      << "the root of the hierarchy has no such file";
}

}  // namespace
}  // namespace headroom::daemon
