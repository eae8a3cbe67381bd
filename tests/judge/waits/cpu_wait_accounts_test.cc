// SPDX-License-Identifier: Apache-2.0
// Waits added up from sweep to sweep: trees of cgroups walked through stepped windows.
#include "judge/waits/cpu_wait_accounts.h"

#include "judge/waits/wait_pairs.h"

#include <headroom/cgroup_record.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>

#include <gtest/gtest.h>

namespace headroom {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMs = 1'000'000;

// kubepods (2) with two pods: web (10, container 11) and batch (20, container 21); a service (3).
// Amounts are added in milliseconds of each window of five seconds. Accounts that know which
// records changed come to the same as accounts that read them all, in each window of each test.
class CpuWaitStory : public testing::Test {
 protected:
  CpuWaitStory() {
    for (const auto& [id, parent] :
         {std::pair{1, 0}, {2, 1}, {10, 2}, {11, 10}, {20, 2}, {21, 20}, {3, 1}}) {
      hr_record record =
          unknown_record(static_cast<std::uint64_t>(id), static_cast<std::uint64_t>(parent));
      record.valid = HR_PSI | HR_CPU | HR_THROTTLE | HR_CPU_LIMITS;
      record.psi_ns[HR_PSI_CPU][HR_PSI_SOME] = record.cpu_usage_ns = record.throttled_ns = 0;
      record.nr_throttled = 0;
      record.cpu_weight = 100;
      records_.push_back(record);
    }
    records_.front().valid = HR_CPU;
    for (const std::uint64_t id : {10, 20}) {
      auto pod = std::make_shared<Pod>();
      pod->uid = std::to_string(id);
      pods_.push_back({.pod = pod, .cgroup = CgroupId{id}, .memory_request = {}});
    }
    cpus_.resize(2, CpuTime{});
  }

  hr_record& at(std::uint64_t id) {
    for (hr_record& record : records_)
      if (record.id == id) return record;
    return records_.front();
  }
  // In the cgroup and all above it.
  void ran(std::uint64_t id, std::uint64_t ms) {
    for (; id; id = at(id).parent_id)
      at(id).cpu_usage_ns += ms * kMs;
  }
  void waited(std::uint64_t id, std::uint64_t ms) {
    for (; id > 1; id = at(id).parent_id)
      at(id).psi_ns[HR_PSI_CPU][HR_PSI_SOME] += ms * kMs;
  }
  void throttled(std::uint64_t id, std::uint64_t ms) {
    at(id).throttled_ns += ms * kMs;
    at(id).nr_throttled += 50;
  }
  void cpu(std::size_t number, std::uint64_t idle, std::uint64_t interrupts, std::uint64_t tasks) {
    cpus_[number]->idle += idle * kMs;
    cpus_[number]->interrupts += interrupts * kMs;
    cpus_[number]->tasks += tasks * kMs;
  }
  void window(Duration length = CpuWaitAccounts::kWindow) {
    at_ += length;
    const auto cpus_of = [&](CgroupId id) -> const CpuSet* {
      const auto found = cpusets_.find(id.value);
      return found == cpusets_.end() ? &all_ : found->second ? &*found->second : nullptr;
    };
    CpuWaitSample sample{
        .at = at_, .records = records_, .pods = pods_, .cpus = cpus_, .throttles = none_};
    accounts_.update(sample, cpus_of);
    stamp_changes();
    sample.changes = changes_;
    of_changes_.update(sample, cpus_of);
    expect_same_accounts();
  }
  // As a sweep stamps the records that it writes.
  void stamp_changes() {
    ++changes_.pass;
    if (!std::ranges::equal(records_, stamped_, {}, &hr_record::id, &hr_record::id)) {
      ++changes_.order;
      stamps_.assign(records_.size(), hr_change_stamp{.pass = changes_.pass});
    }
    for (std::size_t i = 0; i < records_.size() && i < stamped_.size(); ++i)
      if (std::memcmp(&records_[i], &stamped_[i], sizeof(hr_record)) != 0)
        stamps_[i].pass = changes_.pass;
    stamped_ = records_;
    changes_.change_stamps = stamps_;
  }
  void expect_same_accounts() const {
    const auto all = accounts_.totals(), of_changes = of_changes_.totals();
    ASSERT_EQ(all.has_value(), of_changes.has_value());
    EXPECT_EQ(accounts_.contention(), of_changes_.contention());
    EXPECT_TRUE(std::ranges::equal(accounts_.uses().values, of_changes_.uses().values));
    if (!all) return;
    EXPECT_TRUE(std::ranges::equal(all->ids, of_changes->ids));
    EXPECT_TRUE(std::ranges::equal(all->values, of_changes->values));
  }
  // Of a pod since the start, by cause, in milliseconds, without zeros.
  std::map<std::string, std::uint64_t> waits(std::uint64_t pod) {
    std::map<std::string, std::uint64_t> shown;
    const auto totals = accounts_.totals();
    const CpuWaits* waits = totals ? totals->find(pod) : nullptr;
    if (!waits) return {{"absent", 0}};
    for (std::size_t i = 0; i < kCpuWaitCauses; ++i)
      if (waits->ns[i] >= kMs / 2)
        shown[std::string(kCpuWaitCauseNames[i])] = (waits->ns[i] + kMs / 2) / kMs;
    return shown;
  }
  using Waits = std::map<std::string, std::uint64_t>;

  std::vector<hr_record> records_;
  std::vector<PodReading> pods_;
  std::vector<std::optional<CpuTime>> cpus_;
  const CpuSet all_{0, 1};
  std::map<std::uint64_t, std::optional<CpuSet>> cpusets_;
  std::optional<ByCgroup<hr_throttles>> none_;
  Instant at_{Duration(1h)};
  CpuWaitAccounts accounts_, of_changes_;
  SweepChanges changes_;
  std::vector<hr_record> stamped_;  // as of the last window
  std::vector<hr_change_stamp> stamps_;
};

TEST_F(CpuWaitStory, TheFirstSweepTellsNothing) {
  waited(11, 1000);
  window();
  EXPECT_FALSE(accounts_.totals());
  EXPECT_FALSE(accounts_.contention());
}

TEST_F(CpuWaitStory, AContainerAtItsQuotaIsNoContention) {
  window();
  for (int i = 0; i < 3; ++i) {
    ran(11, 500), waited(11, 4500), throttled(11, 4500);
    cpu(0, 4500, 0, 500), cpu(1, 5000, 0, 0);
    window();
  }
  EXPECT_EQ(waits(10), (Waits{{"quota", 13'500}}));
  EXPECT_EQ(waits(20), Waits{});
  EXPECT_EQ(accounts_.contention(), 0);
}

TEST_F(CpuWaitStory, WhatAWindowHasNoRoomForIsOfTheNextOne) {
  window();
  waited(11, 7000);
  for (const std::uint64_t so_far : {5000, 7000}) {
    cpu(0, 0, 0, 5000), cpu(1, 0, 0, 5000);
    window();
    std::uint64_t sum = 0;
    for (const auto& [cause, ms] : waits(10))
      sum += ms;
    EXPECT_EQ(sum, so_far);
  }
}

TEST_F(CpuWaitStory, AQuotaCountsFromWhenTheSliceGetsItsController) {
  const std::vector<hr_record> all = records_;
  std::erase_if(records_, [](const hr_record& each) { return each.id == 10 || each.id == 11; });
  window();
  records_ = all;
  std::erase_if(records_, [](const hr_record& each) { return each.id == 11; });
  at(10).valid = HR_PSI;
  window();
  records_ = all;
  ran(11, 500), waited(11, 4500), throttled(10, 4500);
  cpu(0, 4500, 0, 500), cpu(1, 5000, 0, 0);
  window();
  EXPECT_EQ(waits(10), (Waits{{"quota", 4500}}));
}

TEST_F(CpuWaitStory, AQuotaAboveThePodIsItsParents) {
  window();
  ran(11, 500), waited(11, 4500), throttled(2, 4500);
  cpu(0, 4500, 0, 500), cpu(1, 5000, 0, 0);
  window();
  EXPECT_EQ(waits(10), (Waits{{"parent_quota", 4500}}));
}

// cpu.pressure is up to 2 s late: the node was busy in the first window, and idle in most of the
// second, in which the end of the waits arrives.
TEST_F(CpuWaitStory, ALateWaitBelongsToTheBusyTimeBefore) {
  window();
  ran(11, 5000), ran(21, 5000), waited(11, 3500), waited(21, 3500);
  cpu(0, 0, 0, 5000), cpu(1, 0, 0, 5000);
  window();
  ran(11, 500), ran(21, 500), waited(11, 2000), waited(21, 2000);
  cpu(0, 4500, 0, 500), cpu(1, 4500, 0, 500);
  window();
  EXPECT_EQ(waits(10), (Waits{{"node", 5500}}));
}

// So much late time is kept, and no more.
TEST_F(CpuWaitStory, AnIdleCpuIsAPlacementAfterTheLateWaits) {
  window();
  ran(11, 5000), ran(21, 5000);
  cpu(0, 0, 0, 5000), cpu(1, 0, 0, 5000);
  window();
  for (int i = 0; i < 3; ++i) {
    ran(11, 500), waited(11, 3000);
    cpu(0, 5000, 0, 0), cpu(1, 4000, 0, 1000);
    window();
  }
  EXPECT_EQ(waits(10), (Waits{{"node", 2000}, {"placement", 7000}}));
}

TEST_F(CpuWaitStory, LateThrottlingIsKeptForAWindowWithoutWaits) {
  window();
  throttled(11, 1500);
  cpu(0, 5000, 0, 0), cpu(1, 5000, 0, 0);
  window();
  waited(11, 1400);
  cpu(0, 5000, 0, 0), cpu(1, 5000, 0, 0);
  window();
  EXPECT_EQ(waits(10), (Waits{{"quota", 1400}}));
}

TEST_F(CpuWaitStory, ABusyNodeIsContentionForEqualPods) {
  window();
  ran(11, 5000), ran(21, 5000), waited(11, 4000), waited(21, 3000);
  cpu(0, 0, 0, 5000), cpu(1, 0, 0, 5000);
  window();
  EXPECT_EQ(waits(10), (Waits{{"node", 4000}}));
  EXPECT_EQ(waits(20), (Waits{{"node", 3000}}));
  EXPECT_NEAR(*accounts_.contention(), 0.8, 0.001);
  ASSERT_FALSE(accounts_.pairs().empty());
  EXPECT_EQ(accounts_.pairs()[0].waiter, CgroupId{10});
  EXPECT_EQ(accounts_.pairs()[0].ns / kMs, 2000u);
}

TEST_F(CpuWaitStory, AWeightIsThePodsOwn) {
  at(20).cpu_weight = 10'000;
  at(10).cpu_weight = 1;
  window();
  ran(11, 5), ran(21, 9995), waited(11, 4990), waited(21, 5);
  cpu(0, 0, 0, 5000), cpu(1, 0, 0, 5000);
  window();
  const auto of_web = waits(10);
  EXPECT_GT(of_web.at("weight"), 4900u);
  EXPECT_LT(*accounts_.contention(), 0.02);
  EXPECT_EQ(accounts_.pairs()[0].holder, CgroupId{20});
}

TEST_F(CpuWaitStory, AFullPoolOnAHalfIdleNodeIsNoContention) {
  cpusets_[11] = CpuSet{0};
  window();
  ran(11, 5000), waited(11, 5000);
  cpu(0, 0, 0, 5000), cpu(1, 5000, 0, 0);
  window();
  EXPECT_EQ(waits(10), (Waits{{"cpuset", 5000}}));
  EXPECT_EQ(accounts_.contention(), 0);
}

TEST_F(CpuWaitStory, TheSumIsThatOfCpuPressureThoughItComesLate) {
  window();
  const std::uint64_t seen[] = {3200, 5600, 4700, 4500};  // 2 s late at first, then in bursts
  std::uint64_t sum = 0;
  for (const std::uint64_t ms : seen) {
    ran(11, 500), waited(11, ms), throttled(11, 4500);
    cpu(0, 4500, 0, 500), cpu(1, 5000, 0, 0);
    window();
    sum += ms;
  }
  EXPECT_EQ(waits(10), (Waits{{"quota", sum}}));
}

TEST_F(CpuWaitStory, WithoutPressureAPodIsUnknown) {
  for (const std::uint64_t id : {10, 11, 20, 21})
    at(id).valid &= ~static_cast<hr_u32>(HR_PSI);
  window();
  ran(11, 5000);
  cpu(0, 0, 0, 5000), cpu(1, 0, 0, 5000);
  window();
  EXPECT_EQ(waits(10), (Waits{{"absent", 0}}));
  EXPECT_FALSE(accounts_.contention());
}

TEST_F(CpuWaitStory, AnUnreadCpusetIsUnknownAndNoContention) {
  cpusets_[11] = std::nullopt;
  window();
  ran(11, 5000), waited(11, 5000);
  cpu(0, 0, 0, 5000), cpu(1, 0, 0, 5000);
  window();
  EXPECT_EQ(waits(10), (Waits{{"unknown", 5000}}));
  EXPECT_EQ(accounts_.contention(), 0);
}

TEST_F(CpuWaitStory, APodThatIsGoneIsForgotten) {
  window();
  ran(11, 5000), ran(21, 5000), waited(11, 4000), waited(21, 4000);
  cpu(0, 0, 0, 5000), cpu(1, 0, 0, 5000);
  window();
  std::erase_if(records_,
                [](const hr_record& record) { return record.id == 20 || record.id == 21; });
  pods_.pop_back();
  window();
  EXPECT_EQ(waits(20), (Waits{{"absent", 0}}));
  for (const WaitPair& pair : accounts_.pairs()) {
    EXPECT_NE(pair.holder, CgroupId{20});
    EXPECT_NE(pair.waiter, CgroupId{20});
  }
}

TEST_F(CpuWaitStory, ANewPodCountsFromItsBirth) {
  auto born = records_;
  std::erase_if(records_,
                [](const hr_record& record) { return record.id == 20 || record.id == 21; });
  const PodReading batch = pods_.back();
  pods_.pop_back();
  window();
  records_ = born;
  pods_.push_back(batch);
  ran(21, 5000), waited(21, 2000), ran(11, 5000);
  cpu(0, 0, 0, 5000), cpu(1, 0, 0, 5000);
  window();
  EXPECT_EQ(waits(20), (Waits{{"node", 2000}}));
}

TEST_F(CpuWaitStory, AWindowEndsWhenItIsDue) {
  window();
  waited(11, 100);
  window(1s);
  EXPECT_FALSE(accounts_.totals());
  window(4s);
  EXPECT_TRUE(accounts_.totals());
}

TEST(WaitPairs, AreLimitedAndTheLongestStay) {
  WaitPairs pairs;
  for (std::uint64_t i = 1; i <= 40; ++i) {
    std::vector<WaitPairs::Waiter> waiters{{CgroupId{i}, 1e9 + static_cast<double>(i)}};
    std::vector<WaitPairs::Holder> holders{{CgroupId{100}, 3}, {CgroupId{101}, 1}, {{}, 0}};
    pairs.add(5s, waiters, holders, [](CgroupId, CgroupId) { return true; });
  }
  EXPECT_EQ(pairs.longest().size(), WaitPairs::kPairs);
  EXPECT_EQ(pairs.longest().front().holder, CgroupId{100});
  EXPECT_EQ(pairs.longest().front().waiter, CgroupId{40});
  EXPECT_NEAR(static_cast<double>(pairs.longest().front().ns), 0.75e9, 1e6);
}

TEST(WaitPairs, OldWaitsCountLess) {
  WaitPairs pairs;
  std::vector<WaitPairs::Waiter> waiters{{CgroupId{1}, 8e9}};
  std::vector<WaitPairs::Holder> holders{{CgroupId{2}, 1}};
  const auto all = [](CgroupId, CgroupId) { return true; };
  pairs.add(5s, waiters, holders, all);
  waiters.clear();
  pairs.add(WaitPairs::kHalfLife, waiters, holders, all);
  ASSERT_EQ(pairs.longest().size(), 1u);
  EXPECT_EQ(pairs.longest()[0].ns / 1'000'000, 4000u);
}

}  // namespace
}  // namespace headroom
