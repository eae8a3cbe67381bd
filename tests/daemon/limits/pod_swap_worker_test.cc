// SPDX-License-Identifier: Apache-2.0
// PodSwapWorker and PodSwapRequests on a tree of plain files: what is set, and what is restored.
#include "daemon/limits/pod_swap_worker.h"

#include "config/temp_dir.h"
#include "support/eventually.h"
#include "support/fake_cgroupfs.h"

#include <headroom/cgroup_record.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::daemon {
namespace {

using act::OverriddenFile;

constexpr std::uint64_t kHigh = 1 << 20;

class PodSwapWorkerTest : public ::testing::Test {
 protected:
  PodSwapWorkerTest()
      : tree({.name = "root",
              .files = {},
              .children = {{.name = "hog",
                            .files = {{"memory.swap.high", "max"},
                                      {"memory.swap.events", "high 7\nmax 0\nfail 0\n"}},
                            .children = {}},
                           {.name = "own", .files = {{"memory.swap.high", "4096"}}, .children = {}},
                           {.name = "bank",
                            .files = {{"memory.zswap.writeback", "1"}},
                            .children = {{.name = "app",
                                          .files = {{"memory.zswap.writeback", "1"}},
                                          .children = {}},
                                         {.name = "later",
                                          .files = {{"memory.zswap.writeback", "0"}},
                                          .children = {}}}},
                           {.name = "before68", .files = {}, .children = {}}}}) {}

  PodSwapRequest::Cgroup high(const char* pod, std::uint64_t value = kHigh) const {
    const CgroupId id{tree.id(pod)};
    return {.id = id, .pod = id, .path = std::string("/") + pod, .value = value};
  }
  PodSwapRequest::Cgroup in_zswap(const char* pod, const std::string& below = "") const {
    return {.id = CgroupId{tree.id(pod + below)},
            .pod = CgroupId{tree.id(pod)},
            .path = "/" + (pod + below),
            .file = OverriddenFile::kZswapWriteback};
  }
  std::string value(const char* cgroup, const char* file) const {
    std::string line;
    std::getline(std::ifstream(tree.root() / cgroup / file), line);
    return line;
  }

  test::FakeCgroupfs tree;
  test::TempDir state;
};

TEST_F(PodSwapWorkerTest, SetsRestoresAndLeavesNothing) {
  {
    PodSwapWorker worker(tree.root(), state.path());
    worker.request({.cgroups = {high("hog"), high("own"), in_zswap("bank"), in_zswap("before68"),
                                in_zswap("bank", "/app")}});
    ASSERT_TRUE(test::eventually([&] { return worker.counts().set == 3; }));
    EXPECT_EQ(value("hog", "memory.swap.high"), "1048576");
    EXPECT_EQ(value("bank", "memory.zswap.writeback"), "0");
    EXPECT_EQ(value("bank/app", "memory.zswap.writeback"), "0");
    EXPECT_EQ(worker.counts().limited, 1u);
    EXPECT_EQ(worker.counts().kept_in_zswap, 1u) << "pods";
    EXPECT_TRUE(std::filesystem::exists(state.path() / "pod-swap.json"));
    worker.request({.cgroups = {in_zswap("bank"), in_zswap("bank", "/app")}});
    ASSERT_TRUE(test::eventually([&] { return worker.counts().restored == 1; }));
    EXPECT_EQ(value("hog", "memory.swap.high"), "max");
    EXPECT_EQ(worker.counts().limited, 0u);
    EXPECT_EQ(worker.counts().failed, 0u);
  }
  EXPECT_EQ(value("bank", "memory.zswap.writeback"), "1");
  EXPECT_EQ(value("bank/app", "memory.zswap.writeback"), "1");
  EXPECT_EQ(value("own", "memory.swap.high"), "4096") << "an operator's";
  EXPECT_FALSE(std::filesystem::exists(state.path() / "pod-swap.json"));
}

TEST_F(PodSwapWorkerTest, AnotherShareOfSwapIsSetFromTheOriginalValue) {
  {
    PodSwapWorker worker(tree.root(), state.path());
    worker.request({.cgroups = {high("hog")}});
    ASSERT_TRUE(test::eventually([&] { return worker.counts().set == 1; }));
    worker.request({.cgroups = {high("hog", 2 * kHigh)}});
    ASSERT_TRUE(test::eventually([&] { return worker.counts().set == 2; }));
    EXPECT_EQ(value("hog", "memory.swap.high"), "2097152");
  }
  EXPECT_EQ(value("hog", "memory.swap.high"), "max");
}

TEST_F(PodSwapWorkerTest, WhatACgroupTookFromItsPodIsRestoredToo) {
  {
    PodSwapWorker worker(tree.root(), state.path());
    worker.request({.cgroups = {in_zswap("bank")}});
    ASSERT_TRUE(test::eventually([&] { return worker.counts().set == 1; }));
    worker.request({.cgroups = {in_zswap("bank"), in_zswap("bank", "/later")}});
    ASSERT_TRUE(test::eventually([&] { return worker.counts().set == 2; }));
  }
  EXPECT_EQ(value("bank/later", "memory.zswap.writeback"), "1");
}

TEST_F(PodSwapWorkerTest, CountsHowOftenItSlowsPodsDown) {
  PodSwapWorker worker(tree.root(), state.path());
  PodSwapRequest request{.cgroups = {high("hog")}};
  worker.request(request);
  ASSERT_TRUE(test::eventually([&] { return worker.counts().set == 1; }));
  EXPECT_EQ(worker.counts().throttles, 0u) << "what was before does not count";
  tree.write("hog", "memory.swap.events", "high 12\nmax 0\nfail 0\n");
  request.cgroups[0].is_slowed = true;
  worker.request(request);
  EXPECT_TRUE(test::eventually([&] { return worker.counts().throttles == 5; }));
}

// The node: an ordinary pod (2), a protected one (3) with a container (4) and a process in it (5).
class PodSwapRequestsTest : public ::testing::Test {
 protected:
  PodSwapRequestsTest() {
    using Cgroup = std::pair<std::uint64_t, std::uint64_t>;  // and its parent
    for (const auto& [id, parent] :
         {Cgroup(1, 0), Cgroup(2, 1), Cgroup(3, 1), Cgroup(4, 3), Cgroup(5, 4), Cgroup(6, 2)}) {
      hr_record record = unknown_record(id, parent);
      record.valid = HR_MEMORY_USAGE | HR_MEMORY_STAT;
      record.populated = 1;
      record.memory_usage = 100 << 20;
      record.inactive_file = record.swap_usage = 0;
      records.push_back(record);
    }
    for (const std::uint64_t id : {2U, 3U}) {
      Pod pod;
      pod.declared_qos = id == 3 ? QosClass::kGuaranteed : QosClass::kBurstable;
      PodReading reading{.pod = std::make_shared<Pod>(pod),
                         .cgroup = CgroupId{id},
                         .memory_request = Bytes{80 << 20}};
      reading.record = &records[id - 1];
      pods.push_back(std::move(reading));
    }
    of(snapshot.observations, Signal::kSwapAvailable) =
        Observation{.available = 0, .capacity = 400 << 20, .at = {}};
  }
  std::vector<PodSwapRequest::Cgroup> next() {
    snapshot.cgroups = records;
    snapshot.pods = pods;
    return requests.next(policy, snapshot, names).cgroups;
  }

  struct Names final : report::CgroupNames {
    std::string_view path_of(CgroupId id) const override { return paths.at(id.value); }
    std::uint64_t started_ns(CgroupId) const override { return HR_UNKNOWN; }
    std::vector<std::string> paths{"", "/p", "/p/a", "/p/b", "/p/b/c", "/p/b/c/d", "/p/a/c"};
  };

  judge_limits::PodSwapPolicy policy{.high = 0.25F, .zswap_writeback = false};
  std::vector<hr_record> records;
  std::vector<PodReading> pods;
  Names names;
  Snapshot snapshot;
  PodSwapRequests requests;
};

TEST_F(PodSwapRequestsTest, AShareOfSwapForThePodAndZswapForAllThatIsBelowAProtectedOne) {
  const auto in_zswap = [](std::uint64_t id, const char* path) {
    return PodSwapRequest::Cgroup{.id = CgroupId{id},
                                  .pod = CgroupId{3},
                                  .path = path,
                                  .file = OverriddenFile::kZswapWriteback};
  };
  const PodSwapRequest::Cgroup limited{
      .id = CgroupId{2}, .pod = CgroupId{2}, .path = "/p/a", .value = 100 << 20};
  EXPECT_EQ(next(), (std::vector{limited, in_zswap(3, "/p/b"), in_zswap(4, "/p/b/c"),
                                 in_zswap(5, "/p/b/c/d")}));
  policy.zswap_writeback = true;
  EXPECT_EQ(next(), std::vector{limited});
}

TEST_F(PodSwapRequestsTest, ALimitedPodIsRemembered) {
  EXPECT_EQ(next().size(), 4u);
  records[1].memory_usage = 75 << 20;
  EXPECT_EQ(next().front().id, CgroupId{2}) << "an eighth below its request";
  records[1].memory_usage = 70 << 20;
  EXPECT_EQ(next().size(), 3u);
  records[1].memory_usage = 75 << 20;
  EXPECT_EQ(next().size(), 3u);
}

TEST_F(PodSwapRequestsTest, KnowsWhichPodIsSlowedDown) {
  records[1].swap_usage = 90 << 20;
  EXPECT_FALSE(next().front().is_slowed);
  records[1].swap_usage = 95 << 20;
  EXPECT_TRUE(next().front().is_slowed);
}

TEST_F(PodSwapRequestsTest, WithoutSwapNothingIsAskedFor) {
  of(snapshot.observations, Signal::kSwapAvailable).reset();
  EXPECT_TRUE(next().empty());
}

}  // namespace
}  // namespace headroom::daemon
