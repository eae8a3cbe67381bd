// SPDX-License-Identifier: Apache-2.0
// restore_limits(): what a daemon that was killed left changed, restored without another daemon.
#include "daemon/restore_changes.h"

#include "act/original_values.h"
#include "support/changed_cgroup.h"
#include "support/make_again.h"
#include "support/own_mounts.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace headroom::daemon {
namespace {

namespace fs = std::filesystem;

// The state file as a daemon leaves it that is killed now: `found` is what it saved last.
template <class Found>
auto keep(Found& found) {
  return [&found](const Found& now) {
    if (!now.empty()) found = now;
    return Result<>();
  };
}

// A daemon that has changed every limit of the cgroup. What is restored is restored by its end
// at the latest, so a test looks before.
class KilledDaemon {
 public:
  explicit KilledDaemon(const fs::path& root)
      : high_overrides_(root, keep(high_)),
        burst_overrides_(root, keep(bursts_)),
        swap_overrides_(root, keep(swap_)),
        suspended_(keep(lifted_)) {}

  void change_limits(CgroupId cgroup, int directory) {
    ASSERT_EQ(high_overrides_.override_high(cgroup, directory, Bytes{2 << 20}), 0);
    ASSERT_EQ(burst_overrides_.set_burst(cgroup, "/pod", 20'000), 0);
    ASSERT_EQ(swap_overrides_.set_all({{.cgroup = cgroup, .path = "/pod", .value = 4096}}).at(0),
              0);
    suspended_.lift(directory);
  }
  void save(const fs::path& state) const {
    ASSERT_TRUE(act::memory_high_file(state).save(high_));
    ASSERT_TRUE(act::cpu_burst_file(state).save(bursts_));
    ASSERT_TRUE(act::pod_swap_file(state).save(swap_));
    ASSERT_TRUE(act::suspended_limits_file(state).save(lifted_));
  }

 private:
  act::MemoryHighOverrides::Found high_;
  act::CgroupOverrides::Found bursts_, swap_;
  act::SuspendedLimits::Found lifted_;
  act::MemoryHighOverrides high_overrides_;
  act::CgroupOverrides burst_overrides_, swap_overrides_;
  act::SuspendedLimits suspended_;
};

struct RestoreChangesTest : test::ChangedCgroup {
  void SetUp() override { make_pod(); }
  void change_every_limit() {
    put("memory.high", "1048576");
    put("cpu.max.burst", "1000");
    put("memory.swap.high", "max");
    put("cpu.max", "50000 100000");
    daemon.change_limits(cgroup, directory.get());
    daemon.save(state);
    ASSERT_NE(value("memory.high"), "1048576");
    ASSERT_EQ(value("cpu.max.burst"), "20000");
    ASSERT_EQ(value("memory.swap.high"), "4096");
    ASSERT_NE(value("cpu.max"), "50000 100000");
    ASSERT_FALSE(ledger_is_empty());
  }

  void expect_every_limit_restored() const {
    EXPECT_EQ(value("memory.high"), "1048576");
    EXPECT_EQ(value("cpu.max.burst"), "1000");
    EXPECT_EQ(value("memory.swap.high"), "max");
    EXPECT_EQ(value("cpu.max"), "50000 100000");
    EXPECT_TRUE(ledger_is_empty());
  }
  // The number of files that were not restored while the cgroup could not be written. Absent: no
  // mount can be made here.
  std::optional<int> restore_read_only() const {
    return test::with_own_mounts([this] {
      EXPECT_TRUE(test::mount_read_only(pod));
      return static_cast<int>(restore_limits(dir.path(), state).size());
    });
  }

  KilledDaemon daemon{dir.path()};
};

TEST_F(RestoreChangesTest, EveryLimitIsAsItWas) {
  change_every_limit();
  EXPECT_TRUE(restore_limits(dir.path(), state).empty());
  expect_every_limit_restored();
}

// Its limits happen to be those that the daemon had set.
TEST_F(RestoreChangesTest, ACgroupThatWasMadeAgainKeepsItsLimits) {
  change_every_limit();
  const std::string high = value("memory.high"), cpu_max = value("cpu.max");
  test::make_again(pod);
  restore_limits(dir.path(), state);
  EXPECT_EQ(value("memory.high"), high);
  EXPECT_EQ(value("cpu.max.burst"), "20000");
  EXPECT_EQ(value("memory.swap.high"), "4096");
  EXPECT_EQ(value("cpu.max"), cpu_max);
  EXPECT_TRUE(ledger_is_empty());
}

// The values stay in the ledger, and the caller learns in which files.
TEST_F(RestoreChangesTest, WhatCannotBeWrittenIsReportedAndKept) {
  change_every_limit();
  const auto unrestored = restore_read_only();
  if (!unrestored) GTEST_SKIP() << "needs root and mount namespaces";
  EXPECT_EQ(*unrestored, 4) << "memory.high is still lifted, and its original value kept";
  EXPECT_TRUE(act::memory_high_file(state).exists());
}

TEST_F(RestoreChangesTest, WhatCouldNotBeWrittenIsRestoredLater) {
  change_every_limit();
  const auto unrestored = restore_read_only();
  if (!unrestored) GTEST_SKIP() << "needs root and mount namespaces";
  EXPECT_FALSE(ledger_is_empty());
  EXPECT_TRUE(restore_limits(dir.path(), state).empty());
  expect_every_limit_restored();
}

TEST_F(RestoreChangesTest, ADamagedFileIsReported) {
  std::ofstream(act::memory_high_file(state).path()) << "{";
  EXPECT_EQ(restore_limits(dir.path(), state), Unrestored{act::memory_high_file(state).path()});
}

TEST_F(RestoreChangesTest, WithoutStateFilesNothingIsWritten) {
  EXPECT_TRUE(restore_limits(dir.path(), state).empty());
  EXPECT_TRUE(fs::is_empty(state));
}

}  // namespace
}  // namespace headroom::daemon
