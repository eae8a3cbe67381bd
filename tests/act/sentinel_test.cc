// SPDX-License-Identifier: Apache-2.0
// The sentinel on real cgroups: it kills when the loop is overdue and memory short, and only then.
#include "act/kill/sentinel.h"

#include "act/kill/kill_fds.h"
#include "base/clock.h"
#include "support/test_cgroup.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

namespace headroom::act {
namespace {

using namespace std::chrono_literals;
using test::TestCgroup;
using test::wait_for;

constexpr std::int64_t kLimit = 100 << 20;
constexpr Duration kLong = std::chrono::hours(1);

FailsafeVictim rank_info(const TestCgroup& cgroup) {
  CgroupKillFds kill_fds = *open_kill_fds(cgroup.id(), cgroup.directory());
  FailsafeVictim victim;
  victim.decision.pod = std::make_shared<Pod>();
  victim.decision.cgroup = cgroup.id();
  victim.directory = std::move(kill_fds.directory);
  victim.kill = std::move(kill_fds.kill);
  victim.events = std::move(kill_fds.events);
  return victim;
}

class SentinelTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::writable_cgroup2()) GTEST_SKIP() << "needs root and a writable cgroup v2 mount";
  }
  // A node with so much available, whose victims give nothing back.
  static Sentinel::Setup with(std::int64_t available) {
    return {.read_memory =
                [available] {
                  return Observation{
                      .available = available, .capacity = 4 * kLimit, .at = observe::now()};
                },
            .now = &observe::now};
  }
  // A victim may be seen to end before the sentinel has counted the kill.
  static bool has_killed(const Sentinel& sentinel, std::uint64_t kills) {
    for (int i = 0; i < 500 && sentinel.kills() < kills; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return sentinel.kills() == kills;
  }
  static std::vector<Outcome> first_outcomes(Sentinel& sentinel) {
    std::vector<Outcome> ended = outcomes(sentinel);
    for (int i = 0; i < 500 && ended.empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      ended = outcomes(sentinel);
    }
    return ended;
  }
  static std::vector<Outcome> outcomes(Sentinel& sentinel) {
    std::vector<Outcome> ended;
    sentinel.collect(ended);
    return ended;
  }
};

TEST_F(SentinelTest, KillsTheFirstOfTheListWhenTheLoopIsOverdue) {
  TestCgroup first("sentinel-first"), second("sentinel-second");
  const pid_t doomed = first.spawn_sleeping_child(), spared = second.spawn_sleeping_child();
  Sentinel sentinel(with(kLimit - 1));
  std::vector<FailsafeVictim> list;
  list.push_back(rank_info(first));
  list.push_back(rank_info(second));
  sentinel.set_failsafe_list(kLimit, std::move(list));
  sentinel.beat(observe::now() - Sentinel::kOverdue * 2);
  EXPECT_TRUE(wait_for(doomed, 5000));
  sentinel.beat(observe::now() + kLong);  // the loop is back
  const auto ended = first_outcomes(sentinel);
  ASSERT_GE(ended.size(), 1u);
  EXPECT_EQ(ended[0].result, Outcome::Result::kDone);
  EXPECT_EQ(ended[0].decision.cgroup, first.id());
  EXPECT_EQ(ended[0].decision.reason.threshold, kLimit);
  EXPECT_EQ(ended[0].decision.reason.available, kLimit - 1);
  EXPECT_EQ(sentinel.hangs(), 1u);
  EXPECT_TRUE(outcomes(sentinel).empty()) << "reported once";
  EXPECT_EQ(wait_for(spared, 100).has_value(), ended.size() > 1) << "one at a time";
}

TEST_F(SentinelTest, TheNextIsKilledWhenTheFirstFreedNothing) {
  TestCgroup first("sentinel-one"), second("sentinel-two");
  const pid_t one = first.spawn_sleeping_child(), two = second.spawn_sleeping_child();
  Sentinel sentinel(with(0));
  std::vector<FailsafeVictim> list;
  list.push_back(rank_info(first));
  list.push_back(rank_info(second));
  sentinel.set_failsafe_list(kLimit, std::move(list));
  sentinel.beat(observe::now() - Sentinel::kOverdue * 2);
  EXPECT_TRUE(wait_for(one, 5000));
  EXPECT_TRUE(wait_for(two, 5000));
  EXPECT_TRUE(has_killed(sentinel, 2));
}

TEST_F(SentinelTest, TheNextIsSparedWhileTheMemoryOfTheFirstComesBack) {
  TestCgroup first("sentinel-large"), second("sentinel-small");
  const pid_t one = first.spawn_sleeping_child(), two = second.spawn_sleeping_child();
  std::atomic<bool> returns = true;
  std::atomic<std::int64_t> available = 0;
  Sentinel::Setup setup = with(0);
  setup.read_memory = [&] {
    if (returns) available += 2 << 20;
    return Observation{.available = available, .capacity = 1 << 30, .at = observe::now()};
  };
  Sentinel sentinel(std::move(setup));
  std::vector<FailsafeVictim> list;
  list.push_back(rank_info(first));
  list.push_back(rank_info(second));
  sentinel.set_failsafe_list(1 << 30, std::move(list));
  sentinel.beat(observe::now() - Sentinel::kOverdue * 2);
  EXPECT_TRUE(wait_for(one, 5000));
  EXPECT_FALSE(wait_for(two, 1500));
  EXPECT_EQ(sentinel.kills(), 1u);
  returns = false;
  EXPECT_TRUE(wait_for(two, 5000));
}

// The list is seconds old.
struct UsageCase {
  const char* what;
  std::int64_t innocent, innocent_request, hog;  // MiB
  int hog_priority;
  const char* killed;
};

class SentinelUsageTest : public SentinelTest, public testing::WithParamInterface<UsageCase> {};
INSTANTIATE_TEST_SUITE_P(
    Cases, SentinelUsageTest,
    testing::Values(UsageCase{"it grew since", 30, 0, 2000, 0, "hog"},
                    UsageCase{"the first is too small to matter", 8, 0, 100, 1000, "hog"},
                    UsageCase{"the first keeps to its request", 900, 1000, 100, 1000, "hog"},
                    UsageCase{"the first has the lower priority", 30, 0, 2000, 1000, "innocent"},
                    UsageCase{"nothing fills the node that is listed", 8, 0, 8, 0, "nothing"}),
    [](const auto& each) { return "Case" + std::to_string(each.index); });

TEST_P(SentinelUsageTest, ItIsChosenByWhatPodsHoldNow) {
  SCOPED_TRACE(GetParam().what);
  TestCgroup innocent("sentinel-innocent"), hog("sentinel-hog");
  const pid_t first = innocent.spawn_sleeping_child(), second = hog.spawn_sleeping_child();
  Sentinel::Setup setup = with(kLimit - (20 << 20));
  setup.working_set = [&](int directory) -> std::optional<std::int64_t> {
    struct stat status {};
    if (::fstat(directory, &status) != 0) return std::nullopt;
    return (status.st_ino == innocent.id().value ? GetParam().innocent : GetParam().hog) << 20;
  };
  std::vector<FailsafeVictim> list;
  list.push_back(rank_info(innocent));
  list.back().decision.rank_info.memory_request = Bytes{GetParam().innocent_request << 20};
  list.push_back(rank_info(hog));
  auto pod = std::make_shared<Pod>();
  pod->priority = GetParam().hog_priority;
  list.back().decision.pod = pod;
  Sentinel sentinel(std::move(setup));
  sentinel.set_failsafe_list(kLimit, std::move(list));
  sentinel.beat(observe::now() - Sentinel::kOverdue);
  const auto ended = first_outcomes(sentinel);
  const std::string killed = ended.empty()                          ? "nothing"
                             : ended[0].decision.cgroup == hog.id() ? "hog"
                                                                    : "innocent";
  EXPECT_EQ(killed, GetParam().killed);
  if (killed == "nothing") {
    EXPECT_FALSE(wait_for(first, 0));
    EXPECT_FALSE(wait_for(second, 0));
  }
}

TEST_F(SentinelTest, ARepopulatedCgroupIsKilledAgain) {
  TestCgroup pod("sentinel-again");
  const pid_t first = pod.spawn_sleeping_child();
  Sentinel::Setup setup = with(0);
  setup.kill_again_after = 500ms;
  Sentinel sentinel(std::move(setup));
  std::vector<FailsafeVictim> list;
  list.push_back(rank_info(pod));
  sentinel.set_failsafe_list(kLimit, std::move(list));
  sentinel.beat(observe::now() - Sentinel::kOverdue * 2);
  EXPECT_TRUE(wait_for(first, 5000));
  EXPECT_TRUE(has_killed(sentinel, 1));  // else the next process is killed by the same kill
  const pid_t restarted = pod.spawn_sleeping_child();
  EXPECT_TRUE(wait_for(restarted, 5000));
  EXPECT_TRUE(has_killed(sentinel, 2));
}

TEST_F(SentinelTest, NothingIsKilledWhile) {
  struct Case {
    const char* what;
    std::int64_t available;
    Duration due_in;
    std::int64_t limit;
  };
  for (const Case& each : {Case{"the loop turns", 0, kLong, kLimit},
                           Case{"there is headroom", kLimit, -Sentinel::kOverdue * 2, kLimit},
                           Case{"there is no hard threshold", 0, -Sentinel::kOverdue * 2, 0}}) {
    TestCgroup pod("sentinel-quiet");
    const pid_t child = pod.spawn_sleeping_child();
    Sentinel sentinel(with(each.available));
    std::vector<FailsafeVictim> list;
    list.push_back(rank_info(pod));
    sentinel.set_failsafe_list(each.limit, std::move(list));
    sentinel.beat(observe::now() + each.due_in);
    EXPECT_FALSE(wait_for(child, 800)) << each.what;
    EXPECT_EQ(sentinel.kills(), 0u) << each.what;
  }
}

TEST_F(SentinelTest, EmptyCgroupsAreSkipped) {
  TestCgroup empty("sentinel-empty"), full("sentinel-full");
  const pid_t child = full.spawn_sleeping_child();
  Sentinel sentinel(with(0));
  std::vector<FailsafeVictim> list;
  list.push_back(rank_info(empty));
  list.push_back(rank_info(full));
  sentinel.set_failsafe_list(kLimit, std::move(list));
  sentinel.beat(observe::now() - Sentinel::kOverdue * 2);
  EXPECT_TRUE(wait_for(child, 5000));
  EXPECT_TRUE(has_killed(sentinel, 1));
  EXPECT_EQ(sentinel.kills(), 1u);
}

TEST(LatenessCheck, TheLoopIsLateASecondAfterItsTime) {
  LatenessCheck check;
  const Instant due{std::chrono::seconds(100)};
  EXPECT_FALSE(check.is_late(due, due + LatenessCheck::kLate));
  EXPECT_TRUE(check.is_late(due, due + LatenessCheck::kLate + std::chrono::milliseconds(1)));
  EXPECT_FALSE(check.is_late(Instant::max(), due)) << "the loop has yet to turn";
}

TEST(LatenessCheck, ACallerThatIsLateItselfGivesTheLoopOneMoreSecondOnce) {
  LatenessCheck check;
  const Instant due{std::chrono::seconds(100)};
  check.set_next(due);
  const Instant resumed = due + std::chrono::hours(1);  // the machine was suspended
  EXPECT_FALSE(check.is_late(due, resumed));
  EXPECT_FALSE(check.is_late(due, resumed + LatenessCheck::kLate));
  check.set_next(resumed + LatenessCheck::kLate);
  EXPECT_TRUE(check.is_late(due, resumed + 3 * LatenessCheck::kLate)) << "late again: it hangs";
  const Instant later = resumed + std::chrono::seconds(10);
  check.set_next(later);
  EXPECT_FALSE(check.is_late(later, later + std::chrono::hours(1))) << "suspended once more";
}

}  // namespace
}  // namespace headroom::act
