// SPDX-License-Identifier: Apache-2.0
// When the guard is relied on: while it is seen to look.
#include "daemon/sources/node_sources.h"

#include <gtest/gtest.h>

namespace headroom::daemon {
namespace {

using namespace std::chrono_literals;

struct FakeAlarm final : observe::MemoryAlarm {
  bool arm(Bytes left, const Pace& asked) override {
    armed_at = left;
    pace = asked;
    return works;
  }
  void disarm() override { armed_at.reset(); }
  std::uint64_t checks() const override { return looked; }

  bool works = true;
  std::uint64_t looked = 0;
  std::optional<Bytes> armed_at;
  Pace pace;
};

class GuardControllerTest : public testing::Test {
 protected:
  bool set(Duration at, std::optional<Bytes> left) {
    return guard_controller_.set(Instant{} + 1h + at, policy_, left);
  }
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

}  // namespace
}  // namespace headroom::daemon
