// SPDX-License-Identifier: Apache-2.0
// What is done about a slice, from one look to the next.
#include "judge/allocatable/cgroup/slice_plan.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom {
namespace {

using namespace std::chrono_literals;
using FileNames = std::vector<std::string>;

const CgroupValues kWanted{.cpu_weight = CpuWeight{39}, .memory_max = 1_GiB};

Instant at(std::int64_t ms) {
  return Instant(std::chrono::milliseconds(ms));
}

SliceReading there(CgroupValues values, std::optional<Bytes> in_use = 10_MiB) {
  return {.values = std::move(values), .memory = in_use};
}

// A slice looked at again and again; who looks also tries, when that is due.
struct Looking {
  CgroupValues wanted = kWanted;
  SliceHistory history;

  SlicePlan look(std::int64_t ms, const SliceReading& reading) {
    const SlicePlan plan = plan_slice(wanted, reading, history, at(ms));
    history = plan.after;
    if (plan.due && *plan.due <= at(ms)) record_attempt(history, at(ms));
    return plan;
  }
};

TEST(SlicePlan, CreatesAMissingSliceWithAllValues) {
  Looking slice;
  const SlicePlan plan = slice.look(1000, {});
  EXPECT_TRUE(plan.create);
  EXPECT_EQ(plan.write, kWanted);
  EXPECT_EQ(plan.due, at(1000));
  EXPECT_EQ(plan.drifted, FileNames{}) << "it has never been there";
}

TEST(SlicePlan, WritesOnlyWhatDiffers) {
  Looking slice;
  const auto plan = slice.look(0, there({.cpu_weight = CpuWeight{100}, .memory_max = 1_GiB}));
  EXPECT_FALSE(plan.create);
  EXPECT_EQ(plan.write, CgroupValues{.cpu_weight = CpuWeight{39}});
  EXPECT_EQ(plan.drifted, FileNames{}) << "it was never right";
}

TEST(SlicePlan, WritesNothingIfEqual) {
  Looking slice;
  const auto plan = slice.look(0, there(kWanted));
  EXPECT_FALSE(plan.due);
  EXPECT_TRUE(plan.write.empty());
}

TEST(SlicePlan, ComparesInPagesOfTheKernel) {
  Looking slice{.wanted = {.memory_max = 100_KiB}, .history = {}};
  SliceReading reading = there({.memory_max = 64_KiB}, 10_KiB);
  EXPECT_FALSE(slice.look(0, reading).write.empty());
  reading.page = 64_KiB;
  EXPECT_TRUE(slice.look(1, reading).write.empty());
}

TEST(SlicePlan, EnablesMissingControllers) {
  Looking slice;
  SliceReading reading = there(kWanted);
  reading.missing_controllers = {"cpuset"};
  const auto plan = slice.look(0, reading);
  EXPECT_TRUE(plan.create);
  EXPECT_TRUE(plan.due);
}

TEST(SlicePlan, UnknownValuesAreNeitherWrittenNorForgotten) {
  Looking slice;
  const auto plan = slice.look(0, there({.cpu_weight = CpuWeight{39}}));
  EXPECT_FALSE(plan.due);
  EXPECT_EQ(plan.unread, CgroupValues{.memory_max = 1_GiB});
  EXPECT_EQ(slice.look(1, there({.cpu_weight = CpuWeight{39}, .memory_max = 2_GiB})).drifted,
            FileNames{})
      << "it was not known to be right";
}

TEST(SlicePlan, DriftIsCountedOnceUntilItIsCorrected) {
  Looking slice;
  const CgroupValues raised{.cpu_weight = CpuWeight{39}, .memory_max = 2_GiB};
  slice.look(0, there(kWanted));
  EXPECT_EQ(slice.look(1000, there(raised)).drifted, FileNames{"memory.max"});
  EXPECT_EQ(slice.look(1010, there(raised)).drifted, FileNames{});
  slice.look(1020, there(kWanted));
  EXPECT_EQ(slice.look(2000, there(raised)).drifted, FileNames{"memory.max"});
}

TEST(SlicePlan, WhileSlicesAreBeingMadeNothingIsConfirmedAndNothingDrifts) {
  Looking slice;
  const CgroupValues raised{.cpu_weight = CpuWeight{39}, .memory_max = 2_GiB};
  slice.look(0, there(kWanted));
  slice.history.settled = false;
  const auto plan = slice.look(100, there(raised));
  EXPECT_EQ(plan.drifted, FileNames{});
  EXPECT_EQ(plan.write, CgroupValues{.memory_max = 1_GiB}) << "corrected all the same";
  slice.look(200, there(kWanted));
  slice.history.settled = true;
  EXPECT_EQ(slice.look(300, there(raised)).drifted, FileNames{}) << "it was not confirmed before";
  slice.look(400, there(kWanted));
  EXPECT_EQ(slice.look(500, there(raised)).drifted, FileNames{"memory.max"});
}

TEST(SlicePlan, AChangedTargetIsNoDrift) {
  Looking slice;
  slice.look(0, there(kWanted));
  slice.wanted.memory_max = 2_GiB;
  const auto plan = slice.look(1000, there(kWanted));
  EXPECT_EQ(plan.drifted, FileNames{});
  EXPECT_EQ(plan.write, CgroupValues{.memory_max = 2_GiB});
}

TEST(SlicePlan, ARemovedSliceIsDrift) {
  Looking slice;
  slice.look(0, there(kWanted));
  EXPECT_EQ(slice.look(1000, {}).drifted, FileNames{"slice"});
  EXPECT_EQ(slice.look(1010, {}).drifted, FileNames{}) << "counted once";
}

TEST(SlicePlan, RetriesWithBackOff) {
  Looking slice;
  const SliceReading wrong = there({.cpu_weight = CpuWeight{100}, .memory_max = 1_GiB});
  EXPECT_EQ(slice.look(0, wrong).due, at(0));
  EXPECT_EQ(slice.look(1, wrong).due, at(100));
  EXPECT_EQ(slice.look(100, wrong).due, at(100));
  EXPECT_EQ(slice.look(101, wrong).due, at(300));
  for (int i = 0; i < 20; ++i)
    slice.look(1'000'000 * (i + 1), wrong);
  EXPECT_EQ(slice.look(20'000'001, wrong).due, at(20'060'000)) << "a minute at the most";
}

TEST(SlicePlan, ResetsTheBackOffAfterSuccess) {
  Looking slice;
  const SliceReading wrong = there({.cpu_weight = CpuWeight{100}, .memory_max = 1_GiB});
  for (const int ms : {0, 100, 300, 700})
    slice.look(ms, wrong);
  slice.look(750, there(kWanted));
  EXPECT_EQ(slice.look(60'000, wrong).due, at(60'000));
  slice.look(60'010, there(kWanted));
  EXPECT_EQ(slice.look(60'020, wrong).due, at(60'100)) << "ten calls a second at the most";
}

TEST(SlicePlan, DoesNotLowerALimitBelowUsage) {
  Looking slice;
  const CgroupValues unlimited{.cpu_weight = CpuWeight{39}, .memory_max = Limit<Bytes>::max()};
  const auto excess_usage = slice.look(0, there(unlimited, 1200_MiB));
  EXPECT_EQ(excess_usage.excess_usage, 1200_MiB);
  EXPECT_FALSE(excess_usage.due);
  const auto under = slice.look(1000, there(unlimited, 1_GiB));
  EXPECT_FALSE(under.excess_usage);
  EXPECT_EQ(under.write, CgroupValues{.memory_max = 1_GiB});
  EXPECT_EQ(slice.look(2000, there(unlimited, std::nullopt)).write,
            CgroupValues{.memory_max = 1_GiB})
      << "what is in use is not known";
}

TEST(SlicePlan, LowersALimitInSteps) {
  const SliceHistory history;
  const auto written = [&](Limit<Bytes> actual, Bytes in_use) {
    const SliceReading reading = there({.cpu_weight = CpuWeight{39}, .memory_max = actual}, in_use);
    return plan_slice(kWanted, reading, history, at(0), 20_MiB).write.memory_max;
  };
  EXPECT_EQ(written(Limit<Bytes>::max(), 1200_MiB), Limit<Bytes>(1220_MiB));
  EXPECT_EQ(written(2_GiB, 1200_MiB), Limit<Bytes>(1220_MiB));
  EXPECT_EQ(written(1220_MiB, 1180_MiB), std::nullopt) << "two steps away is near enough";
  EXPECT_EQ(written(1220_MiB, 1179_MiB), Limit<Bytes>(1199_MiB));
  EXPECT_EQ(written(1220_MiB, 1219_MiB), std::nullopt) << "never up";
  EXPECT_EQ(written(1220_MiB, 1_GiB), Limit<Bytes>(1_GiB));
}

}  // namespace
}  // namespace headroom
