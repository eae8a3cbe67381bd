// SPDX-License-Identifier: Apache-2.0
// What the loop's thread asks of the scheduler.
#include "daemon/startup.h"

#include <sched.h>

#include <cerrno>
#include <thread>

#include <gtest/gtest.h>

namespace headroom::daemon {
namespace {

TEST(RealTime, AppliesToTheCallingThreadOnly) {
  bool granted = false;
  int error = 0, own = -1, inherited = -1;
  std::thread([&] {
    granted = request_realtime_scheduling();
    error = errno;
    own = ::sched_getscheduler(0);
    std::thread([&] { inherited = ::sched_getscheduler(0); }).join();
  }).join();
  EXPECT_EQ(::sched_getscheduler(0), SCHED_OTHER);
  EXPECT_EQ(inherited, SCHED_OTHER);
  if (granted) {
    EXPECT_EQ(own, SCHED_FIFO | SCHED_RESET_ON_FORK);
  } else {
    EXPECT_EQ(error, EPERM);
    EXPECT_EQ(own, SCHED_OTHER);
  }
}

}  // namespace
}  // namespace headroom::daemon
