// SPDX-License-Identifier: Apache-2.0
// oom_score_adj of real processes in real cgroups of the running kernel.
#include "act/kill/oom_scores.h"

#include "act/original_values.h"
#include "daemon/state/oom_score_worker.h"
#include "support/test_cgroup.h"

#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace headroom::act {
namespace {

using test::TestCgroup;

std::string file_of(pid_t pid) {
  return "/proc/" + std::to_string(pid) + "/oom_score_adj";
}

int score_of(pid_t pid) {
  int value = -2000;
  std::ifstream(file_of(pid)) >> value;
  return value;
}

class OomScoresTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto mounted = test::writable_cgroup2();
    if (!mounted) GTEST_SKIP() << "needs root and a writable cgroup v2 mount";
    root = *mounted;
  }
  // As the inventory names it.
  std::string path(const TestCgroup& cgroup) const { return cgroup.path().substr(root.size()); }

  static void set(OomScores& scores, CgroupId pod, const std::string& at, int value) {
    if (scores.prepare(pod, at, value)) scores.write(pod);
  }

  std::string root;
  int paced = 0;
};

TEST_F(OomScoresTest, EveryProcessOfThePodIsWrittenAndRestored) {
  TestCgroup pod("oom");
  TestCgroup one(pod, "one"), two(pod, "two");
  const pid_t here = one.spawn_sleeping_child(), there = two.spawn_sleeping_child();
  std::ofstream(file_of(there)) << 300;
  OomScores scores(
      root, [this] { ++paced; }, Duration{});
  set(scores, pod.id(), path(pod), 700);
  EXPECT_EQ(score_of(here), 700);
  EXPECT_EQ(score_of(there), 700);
  const pid_t later = one.spawn_sleeping_child();
  set(scores, pod.id(), path(pod), 800);
  EXPECT_EQ(score_of(later), 800);
  EXPECT_EQ(scores.counters().written, 5u);
  EXPECT_EQ(paced, 10) << "each is read once and written once";
  scores.restore_all();
  EXPECT_EQ(score_of(here), 0);
  EXPECT_EQ(score_of(later), 0);
  EXPECT_EQ(score_of(there), 300);
  EXPECT_TRUE(scores.found().empty());
}

TEST_F(OomScoresTest, NothingIsWrittenTwice) {
  TestCgroup pod("oom-same");
  pod.spawn_sleeping_child();
  OomScores scores(
      root, [] {}, Duration{});
  set(scores, pod.id(), path(pod), 700);
  set(scores, pod.id(), path(pod), 700);
  EXPECT_EQ(scores.counters().written, 1u);
}

TEST_F(OomScoresTest, AValueWrittenLaterByAnotherProcessIsRestored) {
  TestCgroup pod("oom-late");
  const pid_t child = pod.spawn_sleeping_child();
  OomScores scores(
      root, [] {}, Duration{});
  set(scores, pod.id(), path(pod), 700);
  std::ofstream(file_of(child)) << 200;
  set(scores, pod.id(), path(pod), 700);
  EXPECT_EQ(score_of(child), 700);
  scores.restore(pod.id());
  EXPECT_EQ(score_of(child), 200);
}

TEST_F(OomScoresTest, AnotherOfTheSameNameIsNotTouched) {
  TestCgroup pod("oom-other");
  const pid_t child = pod.spawn_sleeping_child();
  OomScores scores(
      root, [] {}, Duration{});
  set(scores, CgroupId{pod.id().value + 1'000'000}, path(pod), 700);
  EXPECT_EQ(score_of(child), 0);
  EXPECT_TRUE(scores.found().empty());
}

TEST_F(OomScoresTest, ValuesOfAnEarlierDaemonAreRestored) {
  TestCgroup pod("oom-crash");
  const pid_t child = pod.spawn_sleeping_child();
  std::string directory = testing::TempDir() + "headroom-oom-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  {
    OomScores crashed(
        root, [] {}, Duration{});
    set(crashed, pod.id(), path(pod), 700);
    ASSERT_TRUE(oom_score_file(directory).save(crashed.found()));
  }
  EXPECT_EQ(score_of(child), 700);
  EXPECT_TRUE(oom_score_file(directory).exists());
  {
    daemon::OomScoreWorker worker(root, directory, Duration{});
    worker.request({{.pod = pod.id(), .path = path(pod), .value = 900}});
    for (int i = 0; i < 500 && score_of(child) != 900; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(score_of(child), 900);
  }
  EXPECT_EQ(score_of(child), 0);
  EXPECT_FALSE(oom_score_file(directory).exists());
  std::filesystem::remove_all(directory);
}

// systemd sets OOMScoreAdjust= after it has moved the process.
TEST_F(OomScoresTest, AProcessThatHasJustStartedIsLeftAlone) {
  TestCgroup pod("oom-young");
  const pid_t child = pod.spawn_sleeping_child();
  OomScores scores(root, [] {});
  EXPECT_FALSE(scores.prepare(pod.id(), path(pod), 700));
  EXPECT_TRUE(scores.left_young());
  scores.write(pod.id());
  EXPECT_EQ(score_of(child), 0);
  std::ofstream(file_of(child)) << 300;
  std::this_thread::sleep_for(OomScores::kSettled + std::chrono::milliseconds(100));
  set(scores, pod.id(), path(pod), 700);
  EXPECT_FALSE(scores.left_young());
  EXPECT_EQ(score_of(child), 700);
  scores.restore_all();
  EXPECT_EQ(score_of(child), 300);
}

// Also where the value that is requested changes meanwhile.
TEST_F(OomScoresTest, TheWorkerComesBackToAProcessThatHadJustStarted) {
  TestCgroup pod("oom-soon");
  std::string directory = testing::TempDir() + "headroom-oom-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  daemon::OomScoreWorker worker(root, directory);
  const pid_t child = pod.spawn_sleeping_child();
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(15);
  for (int value = 700; score_of(child) == 0 && std::chrono::steady_clock::now() < until;) {
    worker.request({{.pod = pod.id(), .path = path(pod), .value = value}});
    value = 701;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_EQ(score_of(child), 701);
  std::filesystem::remove_all(directory);
}

TEST_F(OomScoresTest, NothingIsWrittenBeforeTheOriginalValuesAreSaved) {
  TestCgroup pod("oom-prepare");
  const pid_t child = pod.spawn_sleeping_child();
  std::ofstream(file_of(child)) << 300;
  OomScores crashed(
      root, [] {}, Duration{});
  ASSERT_TRUE(crashed.prepare(pod.id(), path(pod), 700));
  EXPECT_EQ(score_of(child), 300);
  ASSERT_EQ(crashed.found().count(pod.id()), 1u) << "what is saved now";
  EXPECT_EQ(crashed.found().at(pod.id()).values.at(pod.id()), 300);
}

TEST_F(OomScoresTest, ACrashBetweenTheSaveAndTheWritesLosesNothing) {
  TestCgroup pod("oom-between");
  const pid_t child = pod.spawn_sleeping_child();
  std::ofstream(file_of(child)) << 300;
  OomScores first(
      root, [] {}, Duration{});
  set(first, pod.id(), path(pod), 700);
  ASSERT_TRUE(first.prepare(pod.id(), path(pod), 800));  // saved, and no process written
  OomScores next(
      root, [] {}, Duration{});
  std::string directory = testing::TempDir() + "headroom-oom-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  ASSERT_TRUE(oom_score_file(directory).save(first.found()));
  auto saved = oom_score_file(directory).load();
  ASSERT_TRUE(saved);
  next.resume(std::move(*saved));
  set(next, pod.id(), path(pod), 900);
  EXPECT_EQ(score_of(child), 900);
  next.restore_all();
  EXPECT_EQ(score_of(child), 300) << "700 was ours";
  std::filesystem::remove_all(directory);
}

TEST_F(OomScoresTest, NothingIsWrittenWhileTheOriginalValuesCannotBeSaved) {
  TestCgroup pod("oom-unsaved");
  const pid_t child = pod.spawn_sleeping_child();
  daemon::OomScoreWorker worker(root, "/proc/headroom-missing", Duration{});
  worker.request({{.pod = pod.id(), .path = path(pod), .value = 900}});
  for (int i = 0; i < 50; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_EQ(score_of(child), 0);
  }
}

TEST_F(OomScoresTest, APodThatIsNoLongerListedIsRestored) {
  TestCgroup pod("oom-unwished"), other("oom-wished");
  const pid_t child = pod.spawn_sleeping_child(), stays = other.spawn_sleeping_child();
  std::string directory = testing::TempDir() + "headroom-oom-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  daemon::OomScoreWorker worker(root, directory, Duration{});
  const daemon::OomScoreRequest desired{.pod = other.id(), .path = path(other), .value = 600};
  worker.request({{.pod = pod.id(), .path = path(pod), .value = 900}, desired});
  for (int i = 0; i < 500 && (score_of(child) != 900 || score_of(stays) != 600); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(score_of(child), 900);
  worker.request({desired});
  for (int i = 0; i < 500 && score_of(child) != 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(score_of(child), 0);
  EXPECT_EQ(score_of(stays), 600);
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace headroom::act
