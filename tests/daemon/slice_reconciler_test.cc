// SPDX-License-Identifier: Apache-2.0
// The slices looked after: a tree of files, and a systemd that notes what it is asked and does it.
#include "daemon/slices/slice_reconciler.h"

#include "judge/admission_node.h"
#include "support/fake_cgroupfs.h"

#include <filesystem>
#include <fstream>
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

// Answers when told to.
class Systemd final : public act::UnitManager {
 public:
  void set(const std::string& unit, const UnitProperties& properties, act::Persistence lasting,
           Done done) override {
    std::string line = "set " + unit + (lasting == act::Persistence::kForGood ? " for good" : "");
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

// Ends when told to.
class Lowerer final : public act::LimitLowering {
 public:
  explicit Lowerer(std::vector<End>& ended) : ended_(&ended) {}
  void begin(const std::string& name, const std::filesystem::path&, Bytes most,
             Duration within) override {
    begun.push_back(name + " to " + std::to_string(most.count >> 20) + " MiB within " +
                    std::to_string(within / std::chrono::seconds(1)) + " s");
    busy.insert(name);
  }
  bool under_way(const std::string& name) const override { return busy.contains(name); }
  std::vector<End> take_ended() override {
    for (const End& end : *ended_)
      busy.erase(end.name);
    return std::exchange(*ended_, {});
  }

  Lines begun;
  std::set<std::string> busy;

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
class CareForSlices : public testing::Test {
 protected:
  CareForSlices() : fs(slice("")) {
    terms.mode = SlicesMode::kEnforce;
    terms.capacity = {.cpu = MilliCpu{2000}, .memory = 2_GiB};
    terms.policy.kube = {.amounts = {.cpu = MilliCpu{500}, .memory = 512_MiB},
                         .enforcement = Enforcement::kAll,
                         .path = "/kubereserved.slice"};
    care.use(&systemd, "");
  }
  // 700 MiB in use of the 512 that it is to have.
  void fill() {
    fs.add("", slice("kubereserved.slice"));
    fs.write("kubereserved.slice", "cpu.weight", "20\n");
    fs.write("kubereserved.slice", "memory.current", std::to_string((700_MiB).count) + "\n");
    care.adopt(terms);
  }
  Lines look(std::int64_t ms) {
    care.look(Instant(std::chrono::milliseconds(ms)));
    return std::exchange(systemd.asked, {});
  }
  std::string text_of(const std::string& file) {
    std::ifstream in(fs.root() / file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  report::SliceView first() { return care.view().slices.at(0); }

  FakeCgroupfs fs;
  SliceOptions terms;
  Systemd systemd;
  int hastened = 0;
  std::vector<act::LimitLowering::End> lowered;
  Lowerer* lowerer = new Lowerer(lowered);  // care's
  SliceReconciler care{observe::SliceReader(fs.root(), {"cpu", "hugetlb", "memory"}), CpuSet{0, 1},
                       std::unique_ptr<act::LimitLowering>(lowerer), [this] { ++hastened; }};
};

TEST_F(CareForSlices, SetsAndThenStartsWhatIsMissing) {
  care.adopt(terms);
  EXPECT_EQ(look(0), Lines{"set kubereserved.slice MemoryAccounting CPUWeight=20 MemoryMax=" +
                           std::to_string((512_MiB).count)});
  EXPECT_EQ(look(1), Lines{}) << "one call at a time";
  systemd.answer();
  EXPECT_EQ(std::exchange(systemd.asked, {}), Lines{"start kubereserved.slice"});
  fs.add("", slice("kubereserved.slice"));
  fs.write("kubereserved.slice", "cpu.weight", "20\n");
  fs.write("kubereserved.slice", "memory.max", std::to_string((512_MiB).count) + "\n");
  systemd.answer();
  EXPECT_EQ(hastened, 1);
  EXPECT_EQ(look(500), Lines{});
  EXPECT_TRUE(first().exists);
  EXPECT_TRUE(first().differs.empty());
}

TEST_F(CareForSlices, CountsDriftByKnobAndPutsItRight) {
  fs.add("", slice("kubereserved.slice"));
  terms.lasting = act::Persistence::kForGood;
  care.adopt(terms);
  look(0);
  systemd.answer();
  fs.write("kubereserved.slice", "cpu.weight", "20\n");
  fs.write("kubereserved.slice", "memory.max", std::to_string((512_MiB).count) + "\n");
  look(500);
  fs.write("kubereserved.slice", "cpu.weight", "7\n");
  EXPECT_EQ(look(1000), Lines{"set kubereserved.slice for good CPUWeight=20"});
  EXPECT_EQ(first().drift, (std::map<std::string, std::uint64_t>{{"cpu.weight", 1}}));
}

TEST_F(CareForSlices, ObservingAsksForNothing) {
  terms.mode = SlicesMode::kObserve;
  fs.add("", slice("kubereserved.slice"));
  care.adopt(terms);
  EXPECT_EQ(look(0), Lines{});
  EXPECT_EQ(first().differs, (CgroupValues{.cpu_weight = CpuWeight{20}, .memory_max = 512_MiB}));
  EXPECT_EQ(first().memory, 4_KiB);
}

TEST_F(CareForSlices, SaysWhatFailedAndTriesAgainLater) {
  care.adopt(terms);
  look(0);
  systemd.answer(failure("set the properties of kubereserved.slice: Access denied"));
  EXPECT_EQ(first().error, "set the properties of kubereserved.slice: Access denied");
  EXPECT_EQ(look(50), Lines{}) << "not at once";
  EXPECT_EQ(look(150).size(), 1u);
}

TEST_F(CareForSlices, SaysThatThereIsNoSystemd) {
  care.use(nullptr, "reach systemd on the system bus: gone");
  care.adopt(terms);
  look(0);
  EXPECT_EQ(care.view().error, "reach systemd on the system bus: gone");
  EXPECT_EQ(first().error, "reach systemd on the system bus: gone");
}

TEST_F(CareForSlices, ReservesBeyondTheNodeAreTrouble) {
  terms.capacity.memory = 256_MiB;
  care.adopt(terms);
  EXPECT_EQ(look(0), Lines{});
  EXPECT_NE(care.view().error.find("\"memory\" has a reservation of 512Mi"), std::string::npos);
}

TEST_F(CareForSlices, TakesMemoryBeforeItLowersALimitBelowWhatIsInUse) {
  fill();
  EXPECT_EQ(look(0), Lines{}) << "systemd would wait for it";
  EXPECT_EQ(lowerer->begun, Lines{"/kubereserved.slice to 504 MiB within 10 s"});
  look(500);
  EXPECT_EQ(lowerer->begun.size(), 1u) << "it is under way";
  EXPECT_TRUE(first().lowering.under_way);
  fs.write("kubereserved.slice", "memory.current", std::to_string((500_MiB).count) + "\n");
  lowered = {{.name = "/kubereserved.slice", .reached = true, .in_use = 500_MiB}};
  EXPECT_EQ(look(1000),
            Lines{"set kubereserved.slice MemoryMax=" + std::to_string((512_MiB).count)});
  EXPECT_EQ(first().lowering.reached, 1u);
  EXPECT_FALSE(first().over);
}

TEST_F(CareForSlices, TakesMoreAtOnceWhenWhatIsInUseGrewMeanwhile) {
  fill();
  look(0);
  lowered = {{.name = "/kubereserved.slice", .reached = true, .in_use = 504_MiB}};
  look(1000);
  EXPECT_EQ(lowerer->begun.size(), 2u);
}

TEST_F(CareForSlices, SaysThatTooMuchStaysInUseAndTriesAgainLater) {
  fill();
  look(0);
  lowered = {{.name = "/kubereserved.slice", .reached = false, .in_use = 690_MiB}};
  EXPECT_EQ(look(10'000), Lines{});
  EXPECT_TRUE(first().lowering.late);
  EXPECT_EQ(first().lowering.missed, 1u);
  look(69'000);
  EXPECT_EQ(lowerer->begun.size(), 1u);
  look(70'000);
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

// Eviction sees how far the limit is, so it comes near; of a reserve nobody is evicted.
TEST_F(CareForSlices, FollowsWhatPodsUseDownWhenTheyWillNotGiveItBack) {
  terms.policy.kube = {};
  terms.policy.kubepods = *kubepods_name("/");
  terms.capacity.memory = 512_MiB;
  terms.thresholds = {{.signal = Signal::kAllocatableMemoryAvailable,
                       .value = Quantity::of((100_MiB).count),
                       .grace = Duration::zero(),
                       .min_reclaim = {}}};
  fs.add("", slice("kubepods.slice"));
  fs.write("kubepods.slice", "cpu.weight", "77\n");
  fs.write("kubepods.slice", "memory.current", std::to_string((700_MiB).count) + "\n");
  care.adopt(terms);
  look(0);
  systemd.answer();
  lowered = {{.name = "/kubepods.slice", .reached = false, .in_use = 700_MiB}};
  EXPECT_EQ(memory_limits(look(10'000)), Lines{to(725_MiB)});
  systemd.answer();
  fs.write("kubepods.slice", "memory.max", std::to_string((725_MiB).count) + "\n");
  fs.write("kubepods.slice", "memory.current", std::to_string((500_MiB).count) + "\n");
  EXPECT_EQ(memory_limits(look(11'000)), Lines{to(512_MiB)});
}

TEST_F(CareForSlices, GivesTheControllerOfHugePagesWhereItIsWanted) {
  fs.add("", slice("kubereserved.slice"));
  fs.write("", "cgroup.subtree_control", "");
  terms.capacity.huge_pages = {{2_MiB, 64_MiB}};
  care.adopt(terms);
  look(0);
  EXPECT_EQ(text_of("cgroup.subtree_control"), "+hugetlb");
  fs.write("kubereserved.slice", "hugetlb.2MB.max", "max\n");
  systemd.answer();
  look(500);
  EXPECT_EQ(text_of("kubereserved.slice/hugetlb.2MB.max"), "0ax\n")
      << "a plain file keeps the rest";
}

TEST_F(CareForSlices, TiersFollowThePods) {
  terms.policy.kube.enforcement = Enforcement::kNone;
  terms.policy.kubepods = *kubepods_name("/");
  care.adopt(terms);
  EXPECT_EQ(care.view().slices.at(1).desired.cpu_weight, CpuWeight{1});
  terms.active = {std::make_shared<const Pod>(pod_asking("web", {.cpu = "1"}))};
  care.adopt(terms);
  EXPECT_EQ(care.view().slices.at(1).desired.cpu_weight, CpuWeight{39});
  EXPECT_EQ(care.paths(), (Lines{"/kubepods.slice", "/kubepods.slice/kubepods-burstable.slice",
                                 "/kubepods.slice/kubepods-besteffort.slice"}));
  terms.mode = SlicesMode::kOff;
  care.adopt(terms);
  EXPECT_EQ(look(0), Lines{});
  EXPECT_TRUE(care.view().slices.empty());
}

}  // namespace
}  // namespace headroom::daemon
