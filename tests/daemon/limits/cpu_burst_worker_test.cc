// SPDX-License-Identifier: Apache-2.0
// CpuBurstWorker and CpuBurstRequests on a tree of plain files: what is watched, written and
// restored.
#include "daemon/limits/cpu_burst_worker.h"

#include "config/temp_dir.h"
#include "support/fake_cgroupfs.h"

#include <headroom/cgroup_record.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::daemon {
namespace {

using namespace std::chrono_literals;

class CpuBurstWorkerTest : public ::testing::Test {
 protected:
  CpuBurstWorkerTest()
      : tree({.name = "root",
              .files = {{"cpuset.cpus.effective", "0-1"}},
              .children = {{.name = "pod", .files = {{"cpu.max.burst", "0"}}, .children = {}}}}) {
    write_stat();
    clock = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        std::this_thread::sleep_for(50ms);
        // Five ticks of each CPU.
        const unsigned used = busy;
        used_ += used, idle_ += 5 - used;
        write_stat();
      }
    });
  }

  CpuBurstRequest request() const {
    CpuBurstRequest request;
    request.policy.budget = 0.5F;
    request.pods.push_back(
        {.id = CgroupId{tree.id("pod")},
         .quotas = {{.id = CgroupId{tree.id("pod")}, .path = "/pod", .quota_us = 50'000}},
         .throttled = true,
         .bursting = false,
         .quota = 0.5,
         .used = 0.2});
    return request;
  }
  void write_stat() const {
    const std::string times =
        " " + std::to_string(used_) + " 0 0 " + std::to_string(idle_) + " 0 0 0 0 0 0\n";
    const auto next = proc.path() / "stat";
    std::fstream file(next, std::ios::in | std::ios::out);
    if (!file) file.open(next, std::ios::out);
    file << "cpu " << times << "cpu0" << times << "cpu1" << times << "intr 0\n";
  }
  std::string burst() const {
    std::string line;
    std::getline(std::ifstream(tree.root() / "pod/cpu.max.burst"), line);
    return line;
  }
  // Requests what a sweep would, twice a second.
  bool within_seconds(CpuBurstWorker& worker, const CpuBurstRequest& wanted,
                      const std::function<bool()>& holds) const {
    for (int i = 0; i < 500; ++i) {
      if (holds()) return true;
      if (i % 50 == 0) worker.request(wanted);
      std::this_thread::sleep_for(10ms);
    }
    return false;
  }

  test::FakeCgroupfs tree;
  test::TempDir state, proc;
  std::uint64_t used_ = 1000, idle_ = 1000;
  std::atomic<unsigned> busy{1};  // of five ticks
  std::jthread clock;
};

TEST_F(CpuBurstWorkerTest, GrantsWithdrawsAndLeavesNothing) {
  {
    CpuBurstWorker worker(tree.root(), proc.path(), state.path());
    EXPECT_TRUE(within_seconds(worker, request(), [&] { return burst() == "50000"; }));
    EXPECT_TRUE(within_seconds(worker, request(), [&] { return worker.counts().cpus() == 0.5; }));
    EXPECT_TRUE(std::filesystem::exists(state.path() / "cpu-burst.json"));
    busy = 5;
    const auto began = std::chrono::steady_clock::now();
    EXPECT_TRUE(within_seconds(worker, request(), [&] { return burst() == "0"; }));
    EXPECT_LT(std::chrono::steady_clock::now() - began, 1s + 500ms);
    EXPECT_TRUE(within_seconds(worker, request(), [&] { return worker.counts().withdrawn == 1; }));
    busy = 1;
    EXPECT_TRUE(within_seconds(worker, request(), [&] { return burst() == "50000"; }));
  }
  EXPECT_EQ(burst(), "0");
  EXPECT_FALSE(std::filesystem::exists(state.path() / "cpu-burst.json"));
}

TEST_F(CpuBurstWorkerTest, WhenItIsSwitchedOffNothingStaysGranted) {
  CpuBurstWorker worker(tree.root(), proc.path(), state.path());
  ASSERT_TRUE(within_seconds(worker, request(), [&] { return burst() == "50000"; }));
  EXPECT_TRUE(within_seconds(worker, {}, [&] { return burst() == "0"; }));
}

TEST_F(CpuBurstWorkerTest, AnotherQuotaIsAnotherGrant) {
  CpuBurstWorker worker(tree.root(), proc.path(), state.path());
  ASSERT_TRUE(within_seconds(worker, request(), [&] { return burst() == "50000"; }));
  CpuBurstRequest halved = request();
  halved.pods.front().quotas.front().quota_us = 25'000;
  halved.pods.front().quota = 0.25;
  EXPECT_TRUE(within_seconds(worker, halved, [&] { return burst() == "25000"; }));
}

// The pod's cgroup (2) has a quota, as has its container (3); another pod (4) has none, and its
// container (5) has one.
class CpuBurstRequestsTest : public ::testing::Test {
 protected:
  CpuBurstRequestsTest() {
    using Cgroup = std::pair<std::uint64_t, std::uint64_t>;  // and its parent
    for (const auto& [id, parent] :
         {Cgroup(1, 0), Cgroup(2, 1), Cgroup(3, 2), Cgroup(4, 1), Cgroup(5, 4)}) {
      hr_record record = unknown_record(id, parent);
      record.valid = HR_CPU | HR_THROTTLE | HR_CPU_LIMITS;
      record.populated = 1;
      record.cpu_usage_ns = record.nr_throttled = record.nr_bursts = record.throttled_ns = 0;
      record.cpu_period_us = 100'000;
      record.cpu_quota_us = id == 1 || id == 4 ? HR_NO_LIMIT : 50'000;
      records.push_back(record);
      names.names.push_back({.id = CgroupId{id}, .path = "/" + std::to_string(id)});
    }
    for (const std::uint64_t id : {2U, 4U})
      pods.push_back(
          {.pod = std::make_shared<Pod>(), .cgroup = CgroupId{id}, .memory_request = {}});
  }
  CpuBurstRequest next(Duration passed) {
    snapshot.at += passed;
    snapshot.cgroups = records;
    snapshot.pods = pods;
    return requests.next({.budget = 0.2F}, snapshot, names);
  }
  hr_record& record(std::uint64_t id) { return records[id - 1]; }

  struct Names final : report::CgroupNames {
    struct Name {
      CgroupId id;
      std::string path;
    };
    std::string_view path_of(CgroupId id) const override {
      for (const Name& name : names)
        if (name.id == id) return name.path;
      return {};
    }
    std::uint64_t started_ns(CgroupId) const override { return HR_UNKNOWN; }
    std::vector<Name> names;
  };

  std::vector<hr_record> records;
  std::vector<PodReading> pods;
  Names names;
  Snapshot snapshot;
  CpuBurstRequests requests;
};

TEST_F(CpuBurstRequestsTest, APodIsWatchedOnceItWasThrottled) {
  EXPECT_TRUE(next(1s).pods.empty());
  record(3).nr_throttled += 4;
  record(2).cpu_usage_ns += 200'000'000;
  record(3).cpu_usage_ns += 200'000'000;
  const CpuBurstRequest request = next(1s);
  ASSERT_EQ(request.pods.size(), 1u);
  const CpuBurstRequest::Pod& pod = request.pods.front();
  EXPECT_EQ(pod.id, CgroupId{2});
  EXPECT_TRUE(pod.throttled);
  EXPECT_EQ(pod.quotas.size(), 2u);
  EXPECT_DOUBLE_EQ(pod.quota, 0.5) << "the container's is within the pod's";
  EXPECT_DOUBLE_EQ(pod.used.value_or(-1), 0.2);
  EXPECT_EQ(next(60s).pods.size(), 1u);
  EXPECT_TRUE(next(60s).pods.empty()) << "it was not throttled for two minutes";
}

TEST_F(CpuBurstRequestsTest, ABurstIsAUseOfTheGrant) {
  (void)next(1s);
  record(5).nr_bursts += 1;
  const CpuBurstRequest request = next(1s);
  ASSERT_EQ(request.pods.size(), 1u);
  EXPECT_TRUE(request.pods.front().bursting);
  EXPECT_FALSE(request.pods.front().throttled);
}

}  // namespace
}  // namespace headroom::daemon
