// SPDX-License-Identifier: Apache-2.0
// When the guard is relied on: while it is seen to look.
#include "base/log/journal.h"
#include "daemon/sources/node_sources.h"

#include <gtest/gtest.h>

namespace headroom::daemon {
namespace {

using namespace std::chrono_literals;

struct FakeAlarm final : observe::MemoryAlarm {
  bool arm(Bytes left, const Pace& asked) override {
    armed_at = left;
    pace = asked;
    look.at = now;
    return works;
  }
  void disarm() override { armed_at.reset(); }
  std::uint64_t checks() const override { return looked; }
  Look latest_look() const override { return look; }

  bool works = true;
  std::uint64_t looked = 0;
  std::optional<Bytes> armed_at;
  Pace pace;
  Instant now;
  Look look{.at = {}, .working_set = 1_GiB, .available = 60_GiB};
};

class GuardControllerTest : public testing::Test {
 protected:
  bool set(Duration at, std::optional<Bytes> left) {
    alarm_.now = kStart + at;
    return guard_controller_.set(alarm_.now, policy_, left);
  }
  // memory.stat says that so much is in use.
  bool set_beside_memory_stat(Duration at, Bytes used) {
    alarm_.now = kStart + at;
    return guard_controller_.set(alarm_.now, policy_, 800_MiB,
                                 Observation{.available = (64_GiB).count - used.count,
                                             .capacity = (64_GiB).count,
                                             .at = alarm_.now});
  }
  // After the start.
  std::optional<Duration> safe_until(Duration at) const {
    const auto found = guard_controller_.safe_until(policy_, kStart + at);
    return found ? std::optional(*found - kStart) : std::nullopt;
  }
  static constexpr Instant kStart{1h};
  Policy policy_;
  FakeAlarm alarm_;
  GuardControl guard_controller_{&alarm_};
};

TEST_F(GuardControllerTest, IsTrustedAfterItsFirstCheck) {
  EXPECT_FALSE(set(0ms, 800_MiB)) << "its looks are not known yet";
  EXPECT_EQ(alarm_.armed_at, 700_MiB) << "an eighth before the end";
  EXPECT_EQ(alarm_.pace.bytes_per_second, 16 * policy_.fastest_fill);
  EXPECT_EQ(alarm_.pace.floor, policy_.check_floor);
  EXPECT_FALSE(set(300ms, 800_MiB));
  alarm_.looked = 3;
  EXPECT_TRUE(set(400ms, 800_MiB));
}

TEST_F(GuardControllerTest, IsNotTrustedWhenItStopsChecking) {
  set(0ms, 800_MiB);
  alarm_.looked = 1;
  EXPECT_TRUE(set(100ms, 800_MiB));
  EXPECT_TRUE(set(101ms, 800_MiB)) << "it had no time to look again";
  EXPECT_TRUE(set(500ms, 800_MiB));
  EXPECT_FALSE(set(700ms, 800_MiB)) << "five of its longest waits, and not one look";
  EXPECT_FALSE(set(701ms, 800_MiB));
  EXPECT_TRUE(alarm_.armed_at) << "it is asked all the same";
  alarm_.looked = 2;
  EXPECT_TRUE(set(800ms, 800_MiB));
}

TEST(GuardControllerWithoutAlarmTest, IsNotTrusted) {
  GuardControl guard_controller(nullptr);
  EXPECT_FALSE(guard_controller.set(Instant{} + 1h, Policy{}, 800_MiB));
}

TEST_F(GuardControllerTest, IsNotTrustedWhenItCannotBeSet) {
  alarm_.looked = 1;
  alarm_.works = false;
  EXPECT_FALSE(set(0ms, 800_MiB));
  alarm_.works = true;
  EXPECT_TRUE(set(1ms, 800_MiB));
}

TEST_F(GuardControllerTest, IsDisarmedWithoutAThresholdAndThenNotExpectedToCheck) {
  alarm_.looked = 1;
  EXPECT_TRUE(set(0ms, 800_MiB));
  EXPECT_FALSE(set(100ms, std::nullopt));
  EXPECT_FALSE(alarm_.armed_at);
  EXPECT_FALSE(set(10s, std::nullopt));
  EXPECT_TRUE(set(20s, 800_MiB)) << "it was not asked to look meanwhile";
  EXPECT_FALSE(set(21s, 800_MiB));
}

// By what the guard saw last, when its looks do not come in time.
TEST_F(GuardControllerTest, SaysUntilWhenMemoryCannotHaveReachedTheThreshold) {
  policy_.fastest_fill = (1_GiB).count;
  EXPECT_EQ(safe_until(0ms), std::nullopt) << "it is not set";
  set(0ms, 2048_MiB);
  EXPECT_EQ(safe_until(0ms), 1750ms) << "an eighth is kept";
  alarm_.look = {.at = kStart + 500ms, .working_set = 1_GiB, .available = 60_GiB};
  EXPECT_EQ(safe_until(500ms), 2250ms) << "nothing was taken";
  alarm_.look = {.at = kStart + 600ms, .working_set = 2_GiB, .available = 60_GiB};
  EXPECT_EQ(safe_until(600ms), 1350ms);
  alarm_.look.available = Bytes{(59_GiB).count - (512_MiB).count};
  EXPECT_EQ(safe_until(600ms), 850ms) << "the kernel holds more";
  EXPECT_EQ(safe_until(849ms), 850ms) << "it has not looked since: it is not relied on";
  alarm_.look.available = 60_GiB;
  alarm_.look.working_set = 3_GiB;
  EXPECT_EQ(safe_until(600ms), std::nullopt) << "it has been reached";
}

// Just above a threshold memory could be gone sooner than the loop can look.
TEST_F(GuardControllerTest, IsReliedOnForAMomentWhileItsLooksComeInTime) {
  policy_.fastest_fill = (8_GiB).count;
  set(0ms, 16_MiB);  // 1.7 ms until the guard's mark
  EXPECT_EQ(safe_until(1ms), 51ms);
  EXPECT_EQ(safe_until(6ms), 56ms) << "two looks are missing";
  EXPECT_LT(safe_until(7ms), 2ms) << "no look for three of its periods of 2 ms";
  alarm_.look.at = kStart + 7ms;
  EXPECT_EQ(safe_until(8ms), 58ms);
  alarm_.look.working_set = Bytes{(1_GiB).count + (14_MiB).count};
  EXPECT_EQ(safe_until(8ms), std::nullopt) << "the mark is reached";
}

TEST(GuardControllerLagTest, KeepsWhatItsCountersMayLack) {
  FakeAlarm alarm;
  alarm.looked = 1;
  GuardControl guard_controller(&alarm, 128_MiB);
  const Instant at = Instant{} + 1h;
  EXPECT_TRUE(guard_controller.set(at, Policy{}, 1024_MiB));
  EXPECT_EQ(alarm.armed_at, 768_MiB);
  EXPECT_FALSE(guard_controller.set(at, Policy{}, 140_MiB)) << "less than they may lack";
  EXPECT_FALSE(alarm.armed_at);
  EXPECT_EQ(guard_controller.safe_until(Policy{}, at), std::nullopt);
}

// A node that is not added up: memory.stat grows, and the guard's sum does not.
TEST_F(GuardControllerTest, IsNotTrustedWhileItsSumMovesApartFromMemoryStat) {
  alarm_.looked = 1;
  EXPECT_TRUE(set_beside_memory_stat(0ms, 900_MiB))
      << "1 GiB, of which 124 MiB are charged to no cgroup";
  EXPECT_TRUE(set_beside_memory_stat(10ms, 920_MiB)) << "by as much as two readings may differ";
  EXPECT_FALSE(set_beside_memory_stat(20ms, 1900_MiB));
  EXPECT_EQ(safe_until(20ms), std::nullopt);
  for (int turn = 1; turn < GuardControl::kAgreements; ++turn)
    EXPECT_FALSE(set_beside_memory_stat(20ms + turn * 10ms, 1900_MiB)) << turn;
  EXPECT_TRUE(set_beside_memory_stat(200ms, 1900_MiB)) << "it has agreed in ten turns";
  alarm_.look.working_set = 3_GiB;
  EXPECT_TRUE(set_beside_memory_stat(210ms, 3924_MiB)) << "both have grown by 2 GiB";
}

class GuardControllerLogTest : public GuardControllerTest {
 protected:
  // What is logged while memory.stat says for so many turns that this is in use.
  std::string logged(int turns, Bytes used) {
    testing::internal::CaptureStderr();
    {
      const log::Logging logging("warning");
      for (int turn = 0; turn < turns; ++turn)
        set_beside_memory_stat(at_ += 10ms, used);
    }
    return testing::internal::GetCapturedStderr();
  }

  void SetUp() override {
    alarm_.looked = 1;
    EXPECT_EQ(logged(1, 900_MiB), "");
  }

  Duration at_{};
};

TEST_F(GuardControllerLogTest, SaysThatTheSumsHaveMovedApartOnceTheyStayApart) {
  EXPECT_EQ(logged(GuardControl::kAgreements - 1, 1924_MiB), "");
  const std::string log = logged(1, 1924_MiB);
  EXPECT_NE(log.find("moved apart by -1048576 KiB"), std::string::npos) << log;
  EXPECT_EQ(logged(20, 1924_MiB), "") << "once";
}

// A node that is not added up, while memory fills.
TEST_F(GuardControllerLogTest, SaysSoWhenTheyMoveFurtherApartInEachTurn) {
  std::string log;
  for (int turn = 1; turn <= 20; ++turn)
    log += logged(1, Bytes{(900_MiB).count + turn * (100_MiB).count});
  EXPECT_NE(log.find("moved apart"), std::string::npos) << log;
  EXPECT_EQ(log.find("moved apart"), log.rfind("moved apart")) << "once: " << log;
}

// A killed pod's memory is back in the guard's sum, and not yet in memory.stat.
TEST_F(GuardControllerLogTest, SaysNothingWhenMemoryStatFollows) {
  EXPECT_EQ(logged(GuardControl::kAgreements - 1, 1924_MiB), "");
  EXPECT_EQ(safe_until(at_), std::nullopt) << "it is not relied on meanwhile";
  EXPECT_EQ(logged(2 * GuardControl::kAgreements, 900_MiB), "");
  EXPECT_NE(safe_until(at_), std::nullopt);
}

}  // namespace
}  // namespace headroom::daemon
