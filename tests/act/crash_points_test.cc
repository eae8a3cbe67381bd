// SPDX-License-Identifier: Apache-2.0
// The ledger of reversible changes while the daemon is killed before each of its writes: what
// differs from the original value is in the ledger, and the next daemon restores it.
#include "support/crash_points.h"

#include "act/original_values.h"
#include "base/state/saved_taints.h"
#include "config/temp_dir.h"
#include "ctl/changes_command.h"
#include "daemon/state/oom_score_worker.h"
#include "daemon/state/taint_store.h"
#include "support/changed_cgroup.h"
#include "support/test_cgroup.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace headroom::act {
namespace {

namespace fs = std::filesystem;

struct CrashPointsTest : test::ChangedCgroup {
  bool ledger_has(std::string_view setting, std::string_view original) const {
    const auto changes = ledger();
    EXPECT_TRUE(changes) << changes.error().what;
    return changes && std::ranges::any_of(*changes, [&](const ctl::Change& change) {
             return change.setting == setting && change.original == original;
           });
  }
};

TEST_F(CrashPointsTest, MemoryHighIsRestoredWhereverTheDaemonDies) {
  const auto open_overrides = [&] {
    return std::make_unique<MemoryHighOverrides>(dir.path(),
                                                 [this](const MemoryHighOverrides::Found& found) {
                                                   return memory_high_file(state).save(found);
                                                 });
  };
  const int writes = test::crash_at_every_write(
      {.prepare =
           [&] {
             make_pod();
             put("memory.high", "1048576");
           },
       .work =
           [&] {
             const auto overrides = open_overrides();
             (void)overrides->override_high(cgroup, directory.get(), Bytes{2 << 20});
             (void)overrides->restore(cgroup);
           },
       .check =
           [&] {
             if (value("memory.high") != "1048576")
               EXPECT_TRUE(ledger_has("memory.high", "1048576"));
             auto former = memory_high_file(state).load();
             ASSERT_TRUE(former) << former.error().what;
             open_overrides()->restore_all(std::move(*former));
             EXPECT_EQ(value("memory.high"), "1048576");
             EXPECT_TRUE(ledger_is_empty());
           }});
  EXPECT_GE(writes, 6) << "create, write, rename, memory.high twice, and remove";
}

// What is set is saved after the write: until then only the file has the original. `high`: what
// memory.high was.
struct LoweringCrashTest : CrashPointsTest {
  void crash_at_every_write(bool braked, const std::string& high);
};

void LoweringCrashTest::crash_at_every_write(bool braked, const std::string& high) {
  const auto open_overrides = [&] {
    return std::make_unique<MemoryMaxOverrides>(dir.path(),
                                                [this](const MemoryMaxOverrides::Found& found) {
                                                  return memory_max_file(state).save(found);
                                                });
  };
  const int writes = test::crash_at_every_write(
      {.prepare =
           [&] {
             make_pod();
             put("memory.max", "268435456");
             put("memory.high", high);
             put("memory.current", "1048576");
           },
       .work =
           [&] {
             const auto overrides = open_overrides();
             (void)overrides->raise(cgroup, directory.get(), "/pod", Bytes{272 << 20},
                                    Bytes{384 << 20});
             if (braked)
               (void)overrides->set_brake(cgroup, directory.get(), "/pod", Bytes{264 << 20},
                                          Bytes{384 << 20});
             (void)overrides->lower(cgroup, directory.get(), Bytes{256 << 20});
             (void)overrides->release_brake(cgroup, directory.get());
           },
       .check =
           [&] {
             auto former = memory_max_file(state).load();
             ASSERT_TRUE(former) << former.error().what;
             // The original is saved before the first write.
             if (value("memory.max") != "268435456" || value("memory.high") != high) {
               ASSERT_TRUE(former->contains(cgroup));
               EXPECT_EQ(former->at(cgroup).found, Bytes{256 << 20});
             }
             // Opening has emptied a plain file, where the kernel's keeps its value.
             if (value("memory.max").empty())
               put("memory.max", std::to_string(former->at(cgroup).set.count));
             if (value("memory.high").empty()) put("memory.high", "251658240");
             if (value("memory.high") != high) EXPECT_TRUE(ledger_has("memory.high", high));
             const auto next = open_overrides();
             next->resume(std::move(*former));
             next->restore_all();
             EXPECT_EQ(value("memory.max"), "268435456");
             EXPECT_EQ(value("memory.high"), high);
             EXPECT_TRUE(ledger_is_empty());
           }});
  EXPECT_GE(writes, 12);
}

TEST_F(LoweringCrashTest, WithABrake) {
  crash_at_every_write(/*braked=*/true, "max");
}
TEST_F(LoweringCrashTest, WithoutOne) {
  crash_at_every_write(/*braked=*/false, "max");
}
TEST_F(LoweringCrashTest, WithAnothersMemoryHigh) {
  crash_at_every_write(/*braked=*/false, "257000000");
}

TEST_F(CrashPointsTest, ABurstIsWithdrawnWhereverTheDaemonDies) {
  const auto open_overrides = [&] {
    return std::make_unique<CgroupOverrides>(
        dir.path(),
        [this](const CgroupOverrides::Found& found) { return cpu_burst_file(state).save(found); });
  };
  const int writes =
      test::crash_at_every_write({.prepare =
                                      [&] {
                                        make_pod();
                                        put("cpu.max.burst", "1000");
                                      },
                                  .work =
                                      [&] {
                                        const auto bursts = open_overrides();
                                        ASSERT_EQ(bursts->set_burst(cgroup, "/pod", 20'000), 0);
                                        ASSERT_EQ(bursts->restore(cgroup), 0);
                                      },
                                  .check =
                                      [&] {
                                        if (value("cpu.max.burst") != "1000")
                                          EXPECT_TRUE(ledger_has("cpu.max.burst", "1000"));
                                        auto former = cpu_burst_file(state).load();
                                        ASSERT_TRUE(former) << former.error().what;
                                        open_overrides()->restore_former(std::move(*former));
                                        EXPECT_EQ(value("cpu.max.burst"), "1000");
                                        EXPECT_TRUE(ledger_is_empty());
                                      }});
  EXPECT_GE(writes, 3);
}

// A plain file does not follow cpu.idle as the kernel's cpu.weight does; the weight here is the one
// that the kernel sets, so that each point has the values that the kernel would leave.
TEST_F(CrashPointsTest, ASuppressedPodIsReleasedWhereverTheDaemonDies) {
  const auto open_overrides = [&] {
    return std::make_unique<CgroupOverrides>(dir.path(),
                                             [this](const CgroupOverrides::Found& found) {
                                               return cpu_suppress_file(state).save(found);
                                             });
  };
  const int writes =
      test::crash_at_every_write({.prepare =
                                      [&] {
                                        make_pod();
                                        put("cpu.idle", "0");
                                        put("cpu.weight", "39");
                                      },
                                  .work =
                                      [&] {
                                        const auto overrides = open_overrides();
                                        ASSERT_EQ(overrides->suppress(cgroup, "/pod"), 0);
                                        put("cpu.weight", "100");
                                        ASSERT_EQ(overrides->restore(cgroup), 0);
                                      },
                                  .check =
                                      [&] {
                                        if (value("cpu.idle") == "1") {
                                          EXPECT_TRUE(ledger_has("cpu.idle", "0"));
                                          put("cpu.weight", "100");
                                        }
                                        if (value("cpu.weight") != "39")
                                          EXPECT_TRUE(ledger_has("cpu.weight", "39"));
                                        auto former = cpu_suppress_file(state).load();
                                        ASSERT_TRUE(former) << former.error().what;
                                        open_overrides()->restore_former(std::move(*former));
                                        EXPECT_EQ(value("cpu.idle"), "0");
                                        EXPECT_EQ(value("cpu.weight"), "39");
                                        EXPECT_TRUE(ledger_is_empty());
                                      }});
  EXPECT_GE(writes, 6);
}

TEST_F(CrashPointsTest, ALimitOfSwapIsRestoredWhereverTheDaemonDies) {
  const auto open_overrides = [&] {
    return std::make_unique<CgroupOverrides>(
        dir.path(),
        [this](const CgroupOverrides::Found& found) { return pod_swap_file(state).save(found); });
  };
  const int writes = test::crash_at_every_write(
      {.prepare =
           [&] {
             make_pod();
             put("memory.swap.high", "max");
           },
       .work =
           [&] {
             const auto overrides = open_overrides();
             ASSERT_EQ(overrides->set_all({{.cgroup = cgroup, .path = "/pod", .value = 1 << 20}}),
                       std::vector<int>{0});
             ASSERT_TRUE(overrides->restore_others({}).empty());
           },
       .check =
           [&] {
             if (value("memory.swap.high") != "max")
               EXPECT_TRUE(ledger_has("memory.swap.high", "max"));
             auto former = pod_swap_file(state).load();
             ASSERT_TRUE(former) << former.error().what;
             open_overrides()->restore_former(std::move(*former));
             EXPECT_EQ(value("memory.swap.high"), "max");
             EXPECT_TRUE(ledger_is_empty());
           }});
  EXPECT_GE(writes, 6) << "create, write, rename, memory.swap.high twice, and remove";
}

TEST_F(CrashPointsTest, LimitsThatAreLiftedForAKillAreRestoredWhereverTheDaemonDies) {
  const auto open_limits = [&] {
    return std::make_unique<SuspendedLimits>([this](const SuspendedLimits::Found& found) {
      return suspended_limits_file(state).save(found);
    });
  };
  const int writes =
      test::crash_at_every_write({.prepare =
                                      [&] {
                                        make_pod();
                                        put("cpu.max", "20000 100000");
                                        put("cpu.weight", "00100");
                                      },
                                  .work =
                                      [&] {
                                        const auto limits = open_limits();
                                        limits->release(limits->lift(directory.get()));
                                      },
                                  .check =
                                      [&] {
                                        if (value("cpu.max") != "20000 100000")
                                          EXPECT_TRUE(ledger_has("cpu.max", "20000 100000"));
                                        if (value("cpu.weight") != "00100")
                                          EXPECT_TRUE(ledger_has("cpu.weight", "00100"));
                                        auto former = suspended_limits_file(state).load();
                                        ASSERT_TRUE(former) << former.error().what;
                                        open_limits()->restore_all(std::move(*former));
                                        EXPECT_EQ(value("cpu.max"), "20000 100000");
                                        EXPECT_EQ(value("cpu.weight"), "00100");
                                        EXPECT_TRUE(ledger_is_empty());
                                      }});
  EXPECT_GE(writes, 8);
}

// The worker with its thread, and a real process.
TEST_F(CrashPointsTest, OomScoresAreRestoredWhereverTheDaemonDies) {
  const auto root = test::writable_cgroup2();
  if (!root) GTEST_SKIP() << "needs root and a writable cgroup v2 mount";
  const test::TestCgroup cgroup_of_pod("crash-oom");
  const std::string path = cgroup_of_pod.path().substr(root->size());
  const pid_t process = const_cast<test::TestCgroup&>(cgroup_of_pod).spawn_sleeping_child();
  const std::string file = "/proc/" + std::to_string(process) + "/oom_score_adj";
  const auto score = [&] {
    int read = -2000;
    std::ifstream(file) >> read;
    return read;
  };
  const auto wait_for = [&](int wanted) {
    for (int i = 0; i < 1000 && score() != wanted; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  const int writes = test::crash_at_every_write(
      {.prepare =
           [&] {
             make_pod();
             std::ofstream(file) << 300;
           },
       .work =
           [&] {
             daemon::OomScoreWorker worker(*root, state, Duration{});
             worker.request({{.pod = cgroup_of_pod.id(), .path = path, .value = 700}});
             wait_for(700);
             worker.request({{.pod = cgroup_of_pod.id(), .path = path, .value = 800}});
             wait_for(800);
           },
       .check =
           [&] {
             if (score() != 300) EXPECT_TRUE(ledger_has("oom_score_adj", "300"));
             {
               daemon::OomScoreWorker next(*root, state, Duration{});
               next.request({});
             }
             EXPECT_EQ(score(), 300);
             EXPECT_TRUE(ledger_is_empty());
           }});
  EXPECT_GE(writes, 10);
}

// An edit that was answered is in force after a crash; one that was not is so in whole or not at
// all.
TEST_F(CrashPointsTest, AnEditOfTaintsIsKeptInWholeOrNotAtAll) {
  const Taint configured{"kept", "", TaintEffect::kNoSchedule};
  const auto edits = std::array{*parse_taint_edit("new=1:NoExecute"), *parse_taint_edit("kept-")};
  const std::vector<Taint> edited{{"new", "1", TaintEffect::kNoExecute}};
  const int writes = test::crash_at_every_write(
      {.prepare = [&] { make_pod(); },
       .work =
           [&] {
             daemon::TaintStore store(state);
             (void)store.configure({configured});
             if (store.edit(edits, false)) std::ofstream(pod / "answered") << "yes";
           },
       .check =
           [&] {
             const bool answered = fs::remove(pod / "answered");
             daemon::TaintStore next(state);
             ASSERT_TRUE(next.configure({configured}));
             const auto active = next.active_taints();
             EXPECT_TRUE(active == edited || (!answered && active == std::vector{configured}));
             EXPECT_EQ(ledger_has("taint", to_string(configured)), active == edited);
           }});
  EXPECT_GE(writes, 4);
}

}  // namespace
}  // namespace headroom::act
