// SPDX-License-Identifier: Apache-2.0
// restore_limits(): what a daemon that was killed left changed, restored without another daemon.
#include "daemon/restore_changes.h"

#include "act/original_values.h"
#include "support/changed_cgroup.h"

#include <filesystem>

#include <gtest/gtest.h>

namespace headroom::daemon {
namespace {

namespace fs = std::filesystem;

struct RestoreChangesTest : test::ChangedCgroup {
  void SetUp() override { make_pod(); }
  // The state file as a daemon leaves it that is killed now: `found` is what it saved last.
  template <class Found>
  static auto keep(Found& found) {
    return [&found](const Found& now) {
      if (!now.empty()) found = now;
      return Result<>();
    };
  }
};

TEST_F(RestoreChangesTest, EveryLimitIsAsItWas) {
  put("memory.high", "1048576");
  put("cpu.max.burst", "1000");
  put("memory.swap.high", "max");
  put("cpu.max", "50000 100000");
  act::MemoryHighOverrides::Found high;
  act::MemoryHighOverrides high_overrides(dir.path(), keep(high));
  ASSERT_EQ(high_overrides.override_high(cgroup, directory.get(), Bytes{2 << 20}), 0);
  act::CgroupOverrides::Found bursts, swap;
  act::CgroupOverrides burst_overrides(dir.path(), keep(bursts));
  ASSERT_EQ(burst_overrides.set_burst(cgroup, "/pod", 20'000), 0);
  act::CgroupOverrides swap_overrides(dir.path(), keep(swap));
  ASSERT_EQ(swap_overrides.set_all({{.cgroup = cgroup, .path = "/pod", .value = 4096}}).at(0), 0);
  act::SuspendedLimits::Found lifted;
  act::SuspendedLimits suspended(keep(lifted));
  suspended.lift(directory.get());
  ASSERT_TRUE(act::memory_high_file(state).save(high));
  ASSERT_TRUE(act::cpu_burst_file(state).save(bursts));
  ASSERT_TRUE(act::pod_swap_file(state).save(swap));
  ASSERT_TRUE(act::suspended_limits_file(state).save(lifted));
  ASSERT_NE(value("memory.high"), "1048576");
  ASSERT_EQ(value("cpu.max.burst"), "20000");
  ASSERT_EQ(value("memory.swap.high"), "4096");
  ASSERT_NE(value("cpu.max"), "50000 100000");
  ASSERT_FALSE(ledger_is_empty());

  restore_limits(dir.path(), state);

  EXPECT_EQ(value("memory.high"), "1048576");
  EXPECT_EQ(value("cpu.max.burst"), "1000");
  EXPECT_EQ(value("memory.swap.high"), "max");
  EXPECT_EQ(value("cpu.max"), "50000 100000");
  EXPECT_TRUE(ledger_is_empty());
}

TEST_F(RestoreChangesTest, WithoutStateFilesNothingIsWritten) {
  restore_limits(dir.path(), state);
  EXPECT_TRUE(fs::is_empty(state));
}

}  // namespace
}  // namespace headroom::daemon
