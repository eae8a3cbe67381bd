// SPDX-License-Identifier: Apache-2.0
// The slices looked after: a tree of files, and a systemd that notes what it is asked and does it.
#include "daemon/slices/slice_reconciler.h"

#include "judge/admission/admission_node.h"
#include "support/fake_cgroupfs.h"
#include "support/make_again.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::daemon {
namespace {

using namespace test;
using act::UnitProperties;
using Lines = std::vector<std::string>;

// Answers when released.
class Systemd final : public act::UnitManager {
 public:
  void set(const std::string& unit, const UnitProperties& properties, act::Persistence persistence,
           Done done) override {
    std::string line =
        "set " + unit + (persistence == act::Persistence::kPersistent ? " for good" : "");
    for (const auto& property : properties) {
      line += " " + property.name;
      if (const auto* number = std::get_if<std::uint64_t>(&property.value))
        line += "=" + std::to_string(*number);
    }
    asked.push_back(line);
    waiting.push_back(std::move(done));
  }
  void start(const std::string& unit, Done done) override {
    asked.push_back("start " + unit);
    waiting.push_back(std::move(done));
  }
  void answer(const Result<>& result = {}) {
    for (Done& done : std::exchange(waiting, {}))
      done(result);
  }

  Lines asked;
  std::vector<Done> waiting;
};

// Ends when released.
class FakeMemoryLowering final : public act::LimitLowering {
 public:
  explicit FakeMemoryLowering(std::vector<End>& ended) : ended_(&ended) {}
  void begin(const std::string& name, Fd, Bytes most, Duration within) override {
    begun.push_back(name + " to " + std::to_string(most.count >> 20) + " MiB within " +
                    std::to_string(within / std::chrono::seconds(1)) + " s");
    busy.insert(name);
  }
  bool in_progress(const std::string& name) const override {
    if (after_read) after_read();
    return busy.contains(name);
  }
  std::vector<End> collect_finished() override {
    for (const End& end : *ended_)
      busy.erase(end.name);
    return std::exchange(*ended_, {});
  }

  Lines begun;
  std::set<std::string> busy;
  std::function<void()> after_read;  // of the slice, before it is written

 private:
  std::vector<End>* ended_;
};

FakeCgroup slice(const std::string& name, std::vector<FakeCgroup> children = {}) {
  return {.name = name,
          .files = {{"cgroup.controllers", "cpu memory\n"},
                    {"cpu.weight", "100\n"},
                    {"memory.max", "max\n"},
                    {"memory.current", "4096\n"}},
          .children = std::move(children)};
}

// 2 CPUs and 2 GiB, of which kubereserved.slice is to have half a CPU and 512 MiB.
class SliceReconcilerTest : public testing::Test {
 protected:
  SliceReconcilerTest() : fs(slice("")) {
    options.mode = SlicesMode::kEnforce;
    options.capacity = {.cpu = MilliCpu{2000}, .memory = 2_GiB};
    options.policy.kube = {.amounts = {.cpu = MilliCpu{500}, .memory = 512_MiB},
                           .enforcement = Enforcement::kAll,
                           .path = "/kubereserved.slice"};
    reconciler.use(&systemd, "");
  }
  // 700 MiB in use of the 512 that it is to have.
  void fill() {
    fs.add("", slice("kubereserved.slice"));
    fs.write("kubereserved.slice", "cpu.weight", "20\n");
    fs.write("kubereserved.slice", "memory.current", std::to_string((700_MiB).count) + "\n");
    reconciler.reconfigure(options);
  }
  Lines reconcile(std::int64_t ms) {
    reconciler.reconcile(Instant(std::chrono::milliseconds(ms)));
    return std::exchange(systemd.asked, {});
  }
  std::string text_of(const std::string& file) {
    std::ifstream in(fs.root() / file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  report::SliceView first() { return reconciler.view().slices.at(0); }

  FakeCgroupfs fs;
  SliceOptions options;
  Systemd systemd;
  int checks_requested = 0;
  std::vector<act::LimitLowering::End> lowered;
  FakeMemoryLowering* lowerer = new FakeMemoryLowering(lowered);  // care's
  SliceReconciler reconciler{observe::SliceReader(fs.root(), {"cpu", "hugetlb", "memory"}),
                             CpuSet{0, 1}, std::unique_ptr<act::LimitLowering>(lowerer),
                             [this] { ++checks_requested; }};
};

TEST_F(SliceReconcilerTest, SetsPropertiesThenStartsAMissingSlice) {
  reconciler.reconfigure(options);
  EXPECT_EQ(reconcile(0), Lines{"set kubereserved.slice MemoryAccounting CPUWeight=20 MemoryMax=" +
                                std::to_string((512_MiB).count)});
  EXPECT_EQ(reconcile(1), Lines{}) << "one call at a time";
  systemd.answer();
  EXPECT_EQ(std::exchange(systemd.asked, {}), Lines{"start kubereserved.slice"});
  fs.add("", slice("kubereserved.slice"));
  fs.write("kubereserved.slice", "cpu.weight", "20\n");
  fs.write("kubereserved.slice", "memory.max", std::to_string((512_MiB).count) + "\n");
  systemd.answer();
  EXPECT_EQ(checks_requested, 1);
  EXPECT_EQ(reconcile(500), Lines{});
  EXPECT_TRUE(first().exists);
  EXPECT_TRUE(first().differs.empty());
}

TEST_F(SliceReconcilerTest, CountsDriftByFileAndCorrectsIt) {
  fs.add("", slice("kubereserved.slice"));
  options.persistence = act::Persistence::kPersistent;
  reconciler.reconfigure(options);
  reconcile(0);
  systemd.answer();
  fs.write("kubereserved.slice", "cpu.weight", "20\n");
  fs.write("kubereserved.slice", "memory.max", std::to_string((512_MiB).count) + "\n");
  reconcile(500);
  fs.write("kubereserved.slice", "cpu.weight", "7\n");
  EXPECT_EQ(reconcile(1000), Lines{"set kubereserved.slice for good CPUWeight=20"});
  EXPECT_EQ(first().drift, (std::map<std::string, std::uint64_t>{{"cpu.weight", 1}}));
}

// One slice has all controllers but one, and systemd is asked to enable that.
TEST_F(SliceReconcilerTest, WhatSystemdChangesWhileItMakesASliceIsNoDrift) {
  fs.add("", slice("kubereserved.slice"));
  fs.write("kubereserved.slice", "cgroup.controllers", "cpu\n");
  fs.write("kubereserved.slice", "cpu.weight", "20\n");
  fs.write("kubereserved.slice", "memory.max", std::to_string((512_MiB).count) + "\n");
  reconciler.reconfigure(options);
  EXPECT_EQ(reconcile(0), Lines{"set kubereserved.slice MemoryAccounting"});
  fs.write("kubereserved.slice", "cgroup.controllers", "cpu memory\n");
  reconcile(10);
  fs.write("kubereserved.slice", "cpu.weight", "100\n");  // the controller was taken and given back
  reconcile(20);
  systemd.answer();
  EXPECT_EQ(reconcile(110), Lines{"set kubereserved.slice CPUWeight=20"});
  fs.write("kubereserved.slice", "cpu.weight", "20\n");
  systemd.answer();
  reconcile(200);
  fs.write("kubereserved.slice", "cpu.weight", "100\n");  // after both answers
  EXPECT_EQ(reconcile(609).size(), 1u) << "corrected all the same";
  EXPECT_TRUE(first().drift.empty()) << first().drift.begin()->first;
}

TEST_F(SliceReconcilerTest, ChecksAgainWhenWhatItMadeHasSettled) {
  reconciler.reconfigure(options);
  reconcile(0);
  systemd.answer();
  systemd.answer();
  fs.add("", slice("kubereserved.slice"));
  fs.write("kubereserved.slice", "cpu.weight", "20\n");
  fs.write("kubereserved.slice", "memory.max", std::to_string((512_MiB).count) + "\n");
  const auto ms = [](std::int64_t count) { return Instant(std::chrono::milliseconds(count)); };
  EXPECT_EQ(reconciler.reconcile(ms(50)), ms(550));
  EXPECT_EQ(reconciler.reconcile(ms(550)), std::nullopt);
}

TEST_F(SliceReconcilerTest, InObserveModeNothingIsCalled) {
  options.mode = SlicesMode::kObserve;
  fs.add("", slice("kubereserved.slice"));
  reconciler.reconfigure(options);
  EXPECT_EQ(reconcile(0), Lines{});
  EXPECT_EQ(first().differs, (CgroupValues{.cpu_weight = CpuWeight{20}, .memory_max = 512_MiB}));
  EXPECT_EQ(first().memory, 4_KiB);
}

TEST_F(SliceReconcilerTest, ReportsAFailureAndRetriesLater) {
  reconciler.reconfigure(options);
  reconcile(0);
  systemd.answer(failure("set the properties of kubereserved.slice: Access denied"));
  EXPECT_EQ(first().error, "set the properties of kubereserved.slice: Access denied");
  EXPECT_EQ(reconcile(50), Lines{}) << "not at once";
  EXPECT_EQ(reconcile(150).size(), 1u);
}

TEST_F(SliceReconcilerTest, ReportsThatSystemdIsUnreachable) {
  reconciler.use(nullptr, "reach systemd on the system bus: gone");
  reconciler.reconfigure(options);
  reconcile(0);
  EXPECT_EQ(reconciler.view().error, "reach systemd on the system bus: gone");
  EXPECT_EQ(first().error, "reach systemd on the system bus: gone");
}

TEST_F(SliceReconcilerTest, ReservationsBeyondTheNodeAreAnError) {
  options.capacity.memory = 256_MiB;
  reconciler.reconfigure(options);
  EXPECT_EQ(reconcile(0), Lines{});
  EXPECT_NE(reconciler.view().error.find("\"memory\" has a reservation of 512Mi"),
            std::string::npos);
}

TEST_F(SliceReconcilerTest, ReclaimsMemoryBeforeLoweringALimitBelowUsage) {
  fill();
  EXPECT_EQ(reconcile(0), Lines{}) << "systemd would wait for it";
  EXPECT_EQ(lowerer->begun, Lines{"/kubereserved.slice to 504 MiB within 10 s"});
  reconcile(500);
  EXPECT_EQ(lowerer->begun.size(), 1u) << "it is under way";
  EXPECT_TRUE(first().lowering.in_progress);
  fs.write("kubereserved.slice", "memory.current", std::to_string((500_MiB).count) + "\n");
  lowered = {{.name = "/kubereserved.slice", .reached = true, .in_use = 500_MiB}};
  EXPECT_EQ(reconcile(1000),
            Lines{"set kubereserved.slice MemoryMax=" + std::to_string((512_MiB).count)});
  EXPECT_EQ(first().lowering.reached, 1u);
  EXPECT_FALSE(first().excess_usage);
}

TEST_F(SliceReconcilerTest, ReclaimsAgainWhenUsageGrewMeanwhile) {
  fill();
  reconcile(0);
  lowered = {{.name = "/kubereserved.slice", .reached = true, .in_use = 504_MiB}};
  reconcile(1000);
  EXPECT_EQ(lowerer->begun.size(), 2u);
}

TEST_F(SliceReconcilerTest, ReportsThatUsageIsTooHighAndRetriesLater) {
  fill();
  reconcile(0);
  lowered = {{.name = "/kubereserved.slice", .reached = false, .in_use = 690_MiB}};
  EXPECT_EQ(reconcile(10'000), Lines{});
  EXPECT_TRUE(first().lowering.late);
  EXPECT_EQ(first().lowering.missed, 1u);
  reconcile(69'000);
  EXPECT_EQ(lowerer->begun.size(), 1u);
  reconcile(70'000);
  EXPECT_EQ(lowerer->begun.size(), 2u);
}

Lines memory_limits(const Lines& asked) {
  Lines limits;
  for (const std::string& line : asked)
    if (const auto at = line.find("MemoryMax="); at != std::string::npos)
      limits.push_back(line.substr(at));
  return limits;
}

std::string to(Bytes limit) {
  return "MemoryMax=" + std::to_string(limit.count);
}

// Eviction sees how far the limit is, so it comes near; no pod is evicted for a reserve.
TEST_F(SliceReconcilerTest, LowersTheLimitInStepsWhenPodsKeepTheirMemory) {
  options.policy.kube = {};
  options.policy.kubepods = *kubepods_name("/");
  options.capacity.memory = 512_MiB;
  options.thresholds = {{.signal = Signal::kAllocatableMemoryAvailable,
                         .value = Quantity::of((100_MiB).count),
                         .grace = Duration::zero(),
                         .min_reclaim = {}}};
  fs.add("", slice("kubepods.slice"));
  fs.write("kubepods.slice", "cpu.weight", "77\n");
  fs.write("kubepods.slice", "memory.current", std::to_string((700_MiB).count) + "\n");
  reconciler.reconfigure(options);
  reconcile(0);
  systemd.answer();
  lowered = {{.name = "/kubepods.slice", .reached = false, .in_use = 700_MiB}};
  EXPECT_EQ(memory_limits(reconcile(10'000)), Lines{to(725_MiB)});
  systemd.answer();
  fs.write("kubepods.slice", "memory.max", std::to_string((725_MiB).count) + "\n");
  fs.write("kubepods.slice", "memory.current", std::to_string((500_MiB).count) + "\n");
  EXPECT_EQ(memory_limits(reconcile(11'000)), Lines{to(512_MiB)});
}

TEST_F(SliceReconcilerTest, EnablesTheHugetlbControllerWhereNeeded) {
  fs.add("", slice("kubereserved.slice"));
  fs.write("", "cgroup.subtree_control", "");
  options.capacity.huge_pages = {{2_MiB, 64_MiB}};
  reconciler.reconfigure(options);
  reconcile(0);
  EXPECT_EQ(text_of("cgroup.subtree_control"), "+hugetlb");
  fs.write("kubereserved.slice", "hugetlb.2MB.max", "max\n");
  systemd.answer();
  reconcile(500);
  EXPECT_EQ(text_of("kubereserved.slice/hugetlb.2MB.max"), "0ax\n")
      << "a plain file keeps the rest";
}

TEST_F(SliceReconcilerTest, OfASliceThatWasMadeAgainNothingIsReclaimed) {
  fill();
  lowerer->after_read = [this] { make_again(fs.root() / "kubereserved.slice"); };
  reconcile(0);
  EXPECT_EQ(lowerer->begun, Lines{});
  lowerer->after_read = nullptr;
  reconcile(1);
  EXPECT_EQ(lowerer->begun.size(), 1u);
}

TEST_F(SliceReconcilerTest, TheFilesOfASliceThatWasMadeAgainAreNotWritten) {
  fs.add("", slice("kubereserved.slice"));
  fs.write("", "cgroup.subtree_control", "hugetlb\n");
  fs.write("kubereserved.slice", "hugetlb.2MB.max", "max\n");
  options.capacity.huge_pages = {{2_MiB, 64_MiB}};
  reconciler.reconfigure(options);
  lowerer->after_read = [this] { make_again(fs.root() / "kubereserved.slice"); };
  reconcile(0);
  EXPECT_EQ(text_of("kubereserved.slice/hugetlb.2MB.max"), "max\n");
  lowerer->after_read = nullptr;
  systemd.answer();
  reconcile(500);
  EXPECT_EQ(text_of("kubereserved.slice/hugetlb.2MB.max"), "0ax\n")
      << "a plain file keeps the rest";
}

TEST_F(SliceReconcilerTest, QosSlicesAreUpdatedWithThePods) {
  options.policy.kube.enforcement = Enforcement::kNone;
  options.policy.kubepods = *kubepods_name("/");
  reconciler.reconfigure(options);
  EXPECT_EQ(reconciler.view().slices.at(1).desired.cpu_weight, CpuWeight{1});
  options.active = {std::make_shared<const Pod>(pod_asking("web", {.cpu = "1"}))};
  reconciler.reconfigure(options);
  EXPECT_EQ(reconciler.view().slices.at(1).desired.cpu_weight, CpuWeight{39});
  EXPECT_EQ(reconciler.paths(),
            (Lines{"/kubepods.slice", "/kubepods.slice/kubepods-burstable.slice",
                   "/kubepods.slice/kubepods-besteffort.slice"}));
  options.mode = SlicesMode::kOff;
  reconciler.reconfigure(options);
  EXPECT_EQ(reconcile(0), Lines{});
  EXPECT_TRUE(reconciler.view().slices.empty());
}

}  // namespace
}  // namespace headroom::daemon
