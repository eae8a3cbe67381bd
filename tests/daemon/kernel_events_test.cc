// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/node_sources.h"

#include <vector>

#include <gtest/gtest.h>

namespace headroom::daemon {
namespace {

using namespace std::chrono_literals;

constexpr CgroupId kVictim{7};

class KernelEventsTest : public ::testing::Test {
 protected:
  void take(hr_event_kind kind, std::uint64_t cgroup, Duration at) {
    hr_event event{};
    event.kind = static_cast<hr_u32>(kind);
    event.cgroup = cgroup;
    event.at_ns = static_cast<hr_u64>(at.count());
    events_.take(event);
  }

  std::vector<std::uint64_t> oom_kills_, exits_;
  KernelEventHandler events_{
      {.is_victim = [](CgroupId id) { return id == kVictim; },
       .oom_kill = [this](const hr_event& e) { oom_kills_.push_back(e.cgroup); },
       .exited = [this](const hr_event& e) { exits_.push_back(e.cgroup); }}};
};

TEST_F(KernelEventsTest, ManyEventsCauseOneSweep) {
  take(HR_EVENT_CREATED, 1, 10ms);
  take(HR_EVENT_REMOVED, 2, 12ms);
  take(HR_EVENT_CREATED, 3, 59ms);
  EXPECT_EQ(events_.due(), Instant(10ms) + KernelEventHandler::kBatchDelay);
  EXPECT_EQ(events_.due(), std::nullopt) << "asked for once";
}

TEST_F(KernelEventsTest, AVictimsRemovalCausesASweepAtOnce) {
  take(HR_EVENT_CREATED, 1, 10ms);
  take(HR_EVENT_UNPOPULATED, kVictim.value, 20ms);
  EXPECT_EQ(events_.due(), Instant(20ms));
  take(HR_EVENT_REMOVED, kVictim.value, 30ms);
  EXPECT_EQ(events_.due(), Instant(30ms));
}

TEST_F(KernelEventsTest, AnEmptyingCgroupThatIsNoVictimCausesNoSweep) {
  take(HR_EVENT_UNPOPULATED, 1, 10ms);
  EXPECT_EQ(events_.due(), std::nullopt);
}

TEST_F(KernelEventsTest, KillsAndExitsAreForwardedAndCauseNoSweep) {
  take(HR_EVENT_OOM_KILL, 4, 10ms);
  take(HR_EVENT_EXIT, 5, 10ms);
  EXPECT_EQ(oom_kills_, std::vector<std::uint64_t>{4});
  EXPECT_EQ(exits_, std::vector<std::uint64_t>{5});
  EXPECT_EQ(events_.due(), std::nullopt);
}

TEST_F(KernelEventsTest, AnUnknownEventIsIgnored) {
  hr_event event{};
  event.kind = 99;
  events_.take(event);
  EXPECT_EQ(events_.due(), std::nullopt);
}

}  // namespace
}  // namespace headroom::daemon
