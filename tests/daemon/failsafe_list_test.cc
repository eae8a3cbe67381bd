// SPDX-License-Identifier: Apache-2.0
// The sentinel's list across a reload, with a real cgroup and a node that is short of memory.
#include "base/clock.h"
#include "daemon/turn/actuators.h"
#include "support/story.h"
#include "support/test_cgroup.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace headroom::daemon {
namespace {

using namespace test;
using namespace headroom::literals;

class FailsafeListTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!writable_cgroup2()) GTEST_SKIP() << "needs root and a writable cgroup v2 mount";
    ASSERT_NE(::mkdtemp(root.data()), nullptr);
    // All memory is in use.
    std::ofstream(root + "/memory.stat") << "anon 9000000000000000\nfile 0\ninactive_file 0\n";
  }
  void TearDown() override { std::filesystem::remove_all(root); }

  static Policy policy() {
    Policy policy;
    policy.thresholds = {memory_below(200_MiB)};
    policy.mode = Mode::kEnforce;
    return policy;
  }
  // The loop hangs; whether the pod of the list is killed within a second.
  bool is_killed(bool adopted_without_threshold) {
    TestCgroup cgroup("standby");
    const pid_t child = cgroup.spawn_sleeping_child();
    Story story(policy());
    story.pod("hog", 1_GiB);
    PodReading& pod = story.reading(0);
    pod.cgroup = cgroup.id();
    act::HostActuator actuator([&](CgroupId) { return cgroup.directory(); }, &observe::now);
    FailsafeList failsafe_list(actuator, root);
    failsafe_list.reconfigure(policy());
    Snapshot snapshot = story.snapshot(1'000, 2_GiB);
    actuator.update_kill_fds(snapshot.pods);
    Verdict verdict;
    judge(policy(), snapshot, {}, verdict);
    failsafe_list.update(snapshot, verdict);
    if (adopted_without_threshold) {
      Policy none = policy();
      none.thresholds.clear();
      failsafe_list.reconfigure(none);
      judge(none, snapshot, {}, verdict);
      failsafe_list.update(snapshot, verdict);
    }
    failsafe_list.beat(observe::now() - act::Sentinel::kOverdue * 2);
    return wait_for(child, 2000).has_value();
  }

  std::string root = testing::TempDir() + "headroom-standby-XXXXXX";
};

TEST_F(FailsafeListTest, TheListIsUsedWhileThereIsAHardThreshold) {
  EXPECT_TRUE(is_killed(false));
}

TEST_F(FailsafeListTest, AReloadThatRemovesTheHardThresholdRemovesTheList) {
  EXPECT_FALSE(is_killed(true));
}

}  // namespace
}  // namespace headroom::daemon
