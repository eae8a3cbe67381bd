// SPDX-License-Identifier: Apache-2.0
// CpuSuppressWorker and CpuSuppressRequests on a tree of plain files: what is suppressed, and what
// is restored.
#include "daemon/limits/cpu_suppress_worker.h"

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

using namespace std::chrono_literals;

class CpuSuppressWorkerTest : public ::testing::Test {
 protected:
  CpuSuppressWorkerTest()
      : tree(
            {.name = "root",
             .files = {},
             .children = {
                 {.name = "pod",
                  .files = {{"cpu.idle", "0"}, {"cpu.weight", "100"}},
                  .children = {}},
                 {.name = "own", .files = {{"cpu.idle", "1"}, {"cpu.weight", "0"}}, .children = {}},
                 {.name = "tier",
                  .files = {{"cpu.idle", "0"}, {"cpu.weight", "100"}},
                  .children = {}}}}) {}

  CpuSuppressRequest request() const {
    return {.cgroups = {{.id = CgroupId{tree.id("pod")}, .path = "/pod"},
                        {.id = CgroupId{tree.id("own")}, .path = "/own"},
                        {.id = CgroupId{tree.id("tier")}, .path = "/tier", .is_pod = false}}};
  }
  std::string idle(const char* cgroup) const {
    std::string line;
    std::getline(std::ifstream(tree.root() / cgroup / "cpu.idle"), line);
    return line;
  }

  test::FakeCgroupfs tree;
  test::TempDir state;
};

TEST_F(CpuSuppressWorkerTest, SuppressesReleasesAndLeavesNothing) {
  {
    CpuSuppressWorker worker(tree.root(), state.path());
    worker.request(request());
    ASSERT_TRUE(test::eventually([&] { return worker.counts().suppressed == 1; }));
    EXPECT_EQ(idle("pod"), "1");
    EXPECT_EQ(idle("tier"), "1");
    EXPECT_EQ(worker.counts().pods, std::vector{CgroupId{tree.id("pod")}});
    EXPECT_TRUE(std::filesystem::exists(state.path() / "cpu-suppress.json"));
    worker.request({});
    ASSERT_TRUE(test::eventually([&] { return worker.counts().released == 1; }));
    EXPECT_EQ(idle("pod"), "0");
    EXPECT_EQ(idle("tier"), "0");
    worker.request(request());
    ASSERT_TRUE(test::eventually([&] { return worker.counts().suppressed == 2; }));
    EXPECT_EQ(worker.counts().failed, 0u);
  }
  EXPECT_EQ(idle("pod"), "0");
  EXPECT_EQ(idle("tier"), "0");
  EXPECT_EQ(idle("own"), "1") << "an operator's";
  EXPECT_FALSE(std::filesystem::exists(state.path() / "cpu-suppress.json"));
}

// The node: a tier (2) with two BestEffort pods (3, 4), a protected pod (5) beside it.
class CpuSuppressRequestsTest : public ::testing::Test {
 protected:
  CpuSuppressRequestsTest() {
    using Cgroup = std::pair<std::uint64_t, std::uint64_t>;  // and its parent
    for (const auto& [id, parent] :
         {Cgroup(1, 0), Cgroup(2, 1), Cgroup(3, 2), Cgroup(4, 2), Cgroup(5, 1)}) {
      hr_record record = unknown_record(id, parent);
      record.valid = HR_CPU;
      record.populated = 1;
      record.cpu_usage_ns = 0;
      records.push_back(record);
    }
    for (const std::uint64_t id : {3U, 4U, 5U}) {
      Pod pod;
      pod.declared_qos = id == 5 ? QosClass::kGuaranteed : QosClass::kBestEffort;
      PodReading reading{
          .pod = std::make_shared<Pod>(pod), .cgroup = CgroupId{id}, .memory_request = {}};
      reading.record = &records[id - 1];
      pods.push_back(std::move(reading));
    }
  }

  // A window in which each pod used half of a CPU and the protected pod waited for this share.
  CpuSuppressRequest window(std::optional<double> waited) {
    constexpr Duration kWindow = 5s;
    snapshot.at += kWindow;
    for (hr_record& record : records)
      record.cpu_usage_ns += static_cast<std::uint64_t>(kWindow.count()) / 2;
    waits.back()[CpuWaitCause::kNode] +=
        static_cast<std::uint64_t>(waited.value_or(0) * static_cast<double>(kWindow.count()));
    auto& pressure = of(snapshot.observations, Signal::kCpuPressure);
    pressure.reset();
    if (waited) pressure = Observation{.available = 0, .capacity = 1, .at = snapshot.at};
    return next();
  }
  CpuSuppressRequest next() {
    snapshot.cgroups = records;
    snapshot.pods = pods;
    snapshot.waits.cpu = ByCgroup<CpuWaits>{.ids = ids, .values = waits};
    return requests.next(policy, snapshot, names, pods_cgroup);
  }
  static std::vector<std::uint64_t> ids_of(const CpuSuppressRequest& request) {
    std::vector<std::uint64_t> ids;
    for (const auto& cgroup : request.cgroups)
      ids.push_back(cgroup.id.value);
    return ids;
  }

  struct Names final : report::CgroupNames {
    std::string_view path_of(CgroupId id) const override { return paths.at(id.value); }
    std::uint64_t started_ns(CgroupId) const override { return HR_UNKNOWN; }
    std::vector<std::string> paths{"",       "/pods", "/pods/tier", "/pods/tier/a", "/pods/tier/b",
                                   "/pods/c"};
  };
  using Ids = std::vector<std::uint64_t>;

  judge_limits::SuppressPolicy policy{.threshold = 0.2F};
  std::string pods_cgroup = "pods";
  std::vector<hr_record> records;
  std::vector<PodReading> pods;
  std::vector<std::uint64_t> ids{3, 4, 5};
  std::vector<CpuWaits> waits{3};
  Names names;
  Snapshot snapshot;
  CpuSuppressRequests requests;
};

TEST_F(CpuSuppressRequestsTest, ThePodsAndTheTierInWhichNothingElseRuns) {
  EXPECT_EQ(ids_of(window(0.5)), Ids{}) << "nothing is known of the first window";
  EXPECT_EQ(ids_of(window(0.1)), Ids{});
  EXPECT_EQ(ids_of(window(0.5)), (Ids{3, 4, 2}));
  EXPECT_FALSE(window(0.5).cgroups.back().is_pod);
}

TEST_F(CpuSuppressRequestsTest, ATierIsLeftAloneBesideAKubelet) {
  pods_cgroup = "";
  (void)window(0.5);
  EXPECT_EQ(ids_of(window(0.5)), (Ids{3, 4}));
}

TEST_F(CpuSuppressRequestsTest, ATierWithAPodThatIsNotSuppressedIsLeftAlone) {
  pods[1].critical = true;
  (void)window(0.5);
  EXPECT_EQ(ids_of(window(0.5)), (Ids{3}));
  records[3].populated = 0;
  EXPECT_EQ(ids_of(next()), (Ids{3, 2})) << "the critical pod has ended";
}

TEST_F(CpuSuppressRequestsTest, BetweenTwoWindowsANewPodIsSuppressedAtOnce) {
  records[3].populated = 0;
  (void)window(0.5);
  EXPECT_EQ(ids_of(window(0.5)), (Ids{3, 2}));
  records[3].populated = 1;
  snapshot.at += 500ms;
  EXPECT_EQ(ids_of(next()), (Ids{3, 4, 2}));
}

TEST_F(CpuSuppressRequestsTest, AtAllTimesIfThePolicySaysSo) {
  policy = {.always = true};
  EXPECT_EQ(ids_of(next()), (Ids{3, 4, 2})) << "in the first sweep";
  EXPECT_EQ(ids_of(window(std::nullopt)), (Ids{3, 4, 2}));
  EXPECT_EQ(ids_of(window(0)), (Ids{3, 4, 2}));
}

TEST_F(CpuSuppressRequestsTest, UnknownWaitsSuppressNothing) {
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(ids_of(window(std::nullopt)), Ids{});
}

TEST_F(CpuSuppressRequestsTest, AnotherPolicyBeginsAnew) {
  (void)window(0.5);
  EXPECT_EQ(ids_of(window(0.5)), (Ids{3, 4, 2}));
  policy.threshold = 0.6F;
  EXPECT_EQ(ids_of(next()), Ids{});
  EXPECT_EQ(ids_of(window(0.5)), Ids{});
}

}  // namespace
}  // namespace headroom::daemon
