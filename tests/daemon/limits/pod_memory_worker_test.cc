// SPDX-License-Identifier: Apache-2.0
// PodMemoryWorker on a tree of plain files: what it writes, and what it restores.
#include "daemon/limits/pod_memory_worker.h"

#include "base/clock.h"
#include "config/temp_dir.h"
#include "support/eventually.h"
#include "support/fake_cgroupfs.h"

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace headroom::daemon {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

class PodMemoryWorkerTest : public ::testing::Test {
 protected:
  PodMemoryWorkerTest()
      : tree({.name = "root",
              .files = {{"memory.stat", "anon 0\nfile 0\ninactive_file 0\n"}},
              .children = {{.name = "pod",
                            .files = {{"memory.current", std::to_string(100 * kMiB)},
                                      {"memory.max", std::to_string(256 * kMiB)},
                                      {"memory.high", "max"},
                                      {"memory.stat", "inactive_file 0\nactive_file 0\n"},
                                      {"memory.reclaim", ""}},
                            .children = {}}}}) {}

  PodMemoryRequest request() const {
    PodMemoryRequest request;
    request.limits.ceiling = 1.5F;
    request.limited.push_back({.id = CgroupId{tree.id("pod")}, .path = "/pod"});
    return request;
  }
  std::string read(const char* file) const {
    std::string line;
    std::getline(std::ifstream(tree.root() / "pod" / file), line);
    return line;
  }
  std::int64_t max() const {
    const std::string text = read("memory.max");
    return text.empty() ? 0 : std::stoll(text) / kMiB;
  }
  void use(std::int64_t mib) { tree.write("pod", "memory.current", std::to_string(mib * kMiB)); }

  test::FakeCgroupfs tree;
  test::TempDir state;
};

TEST_F(PodMemoryWorkerTest, RaisesAndLowersAndLeavesNothing) {
  {
    PodMemoryWorker worker(tree.root(), state.path());
    worker.request(request());
    use(252);
    EXPECT_TRUE(test::eventually([&] { return max() > 256; }));
    EXPECT_TRUE(test::eventually([&] { return worker.counts().raised_now == 1; }));
    EXPECT_LE(max(), 384);
    EXPECT_TRUE(std::filesystem::exists(state.path() / "memory-max.json"));
    use(100);
    EXPECT_TRUE(test::eventually([&] { return max() == 256; }));
    EXPECT_TRUE(test::eventually([&] { return worker.counts().lowered >= 1; }));
  }
  EXPECT_EQ(max(), 256);
  EXPECT_EQ(read("memory.high"), "max");
  EXPECT_FALSE(std::filesystem::exists(state.path() / "memory-max.json"));
}

TEST_F(PodMemoryWorkerTest, WhatItPlansCanBePlannedAgain) {
  const auto plans = std::make_shared<LimitPlanQueue>();
  plans->switch_on();
  {
    PodMemoryWorker worker(tree.root(), state.path(), plans);
    worker.request(request());
    use(252);
    ASSERT_TRUE(test::eventually([&] { return worker.counts().raised_now == 1; }));
    use(100);
    ASSERT_TRUE(test::eventually([&] { return worker.counts().lowered >= 1; }));
  }
  const recording::LimitPlans made = plans->take(observe::now());
  ASSERT_FALSE(made.plans.empty());
  std::size_t raises = 0, lowerings = 0;
  for (const recording::PlannedLimit& each : made.plans) {
    EXPECT_EQ(each.cgroup, CgroupId{tree.id("pod")});
    EXPECT_TRUE(recording::is_same_again(each));
    raises += each.plan.raise_to.has_value() ? 1 : 0;
    lowerings += each.plan.lower_to.has_value() ? 1 : 0;
  }
  EXPECT_GT(raises, 0u);
  EXPECT_GT(lowerings, 0u);
}

TEST_F(PodMemoryWorkerTest, ANodeWithoutRoomRaisesNothing) {
  PodMemoryWorker worker(tree.root(), state.path());
  PodMemoryRequest wanted = request();
  wanted.reserved = INT64_MAX / 2;
  worker.request(wanted);
  use(255);
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(max(), 256);
  EXPECT_EQ(read("memory.high"), "max") << "no brake where nothing can be raised";
}

TEST_F(PodMemoryWorkerTest, WhenItIsSwitchedOffEveryLimitIsLowered) {
  PodMemoryWorker worker(tree.root(), state.path());
  worker.request(request());
  use(252);
  ASSERT_TRUE(test::eventually([&] { return max() > 256; }));
  use(10);
  worker.request({});
  EXPECT_TRUE(test::eventually([&] { return max() == 256; }));
  EXPECT_TRUE(test::eventually([&] { return read("memory.high") == "max"; }));
}

TEST_F(PodMemoryWorkerTest, ReclaimsInTheBackground) {
  PodMemoryWorker worker(tree.root(), state.path());
  PodMemoryRequest wanted = request();
  wanted.limits = {.reclaim = true};
  worker.request(wanted);
  use(255);
  EXPECT_TRUE(test::eventually([&] { return !read("memory.reclaim").empty(); }));
  EXPECT_TRUE(test::eventually([&] { return worker.counts().background_reclaimed > 0; }));
  EXPECT_EQ(max(), 256);
}

struct ColdMemoryTest : PodMemoryWorkerTest {
  PodMemoryRequest cold_request(CgroupId id) const;
};

PodMemoryRequest ColdMemoryTest::cold_request(CgroupId id) const {
  PodMemoryRequest wanted;
  wanted.cold.below = 0.2F;
  wanted.cold.swappiness = 100;
  wanted.cold_wanted = true;
  wanted.over_request.push_back(
      {.id = id, .path = "/pod", .usage = 100 * kMiB, .request = 10 * kMiB, .refaulted = 0});
  return wanted;
}

TEST_F(ColdMemoryTest, IsPushedOut) {
  PodMemoryWorker worker(tree.root(), state.path());
  const PodMemoryRequest wanted = cold_request(CgroupId{tree.id("pod")});
  worker.request(wanted);
  EXPECT_TRUE(test::eventually(
      [&] { return worker.counts().cold_pushed > 0 || (worker.request(wanted), false); }));
  EXPECT_NE(read("memory.reclaim").find("swappiness=100"), std::string::npos);
}

TEST_F(ColdMemoryTest, IsPushedNoFurtherThanTheSwapHighThatItHasNow) {
  const PodMemoryRequest wanted = cold_request(CgroupId{tree.id("pod")});
  tree.write("pod", "memory.swap.high", std::to_string(64 * kMiB));
  tree.write("pod", "memory.swap.current", std::to_string(56 * kMiB));
  PodMemoryWorker worker(tree.root(), state.path());
  worker.request(wanted);
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(read("memory.reclaim"), "") << "an eighth below it";
  tree.write("pod", "memory.swap.current", std::to_string(54 * kMiB));
  EXPECT_TRUE(test::eventually(
      [&] { return worker.counts().cold_pushed > 0 || (worker.request(wanted), false); }));
  EXPECT_EQ(read("memory.reclaim").substr(0, 7), "2097152") << "what is left, and not a whole step";
}

TEST_F(ColdMemoryTest, IsNotPushedWhereItsSwapIsUnknown) {
  tree.write("pod", "memory.swap.high", std::to_string(64 * kMiB));
  PodMemoryWorker worker(tree.root(), state.path());
  worker.request(cold_request(CgroupId{tree.id("pod")}));
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(read("memory.reclaim"), "");
}

TEST_F(ColdMemoryTest, OfAnotherCgroupAtThePathStays) {
  const CgroupId judged{tree.id("pod") + 1};
  PodMemoryWorker worker(tree.root(), state.path());
  worker.request(cold_request(judged));
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(read("memory.reclaim"), "");
  EXPECT_EQ(worker.counts().cold_pushed, 0u);
}

}  // namespace
}  // namespace headroom::daemon
