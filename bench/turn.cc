// SPDX-License-Identifier: Apache-2.0
// turn: what one turn of the daemon costs in user space, without a kernel to read from: observe →
// judge → act → report over a tree of pods whose records come from memory.
//
//   turn [--pods 1000] [--turns 20]
//
// Meant for callgrind, whose counts repeat: bench/instructions runs it with two numbers of turns
// and divides the difference, so that neither the start nor the first turn is counted. Each pod is
// a cgroup with two containers; a tenth of the records changes between turns, and idle ones are
// written again as often as the daemon reads them; nothing is near a threshold, as on nearly every
// turn of a daemon's life.
#include "act/host_actuator.h"
#include "base/clock.h"
#include "daemon/sources/node_sources.h"
#include "daemon/turn/allocation_count.h"
#include "daemon/turn/engine.h"
#include "judge/resources/pod_resources.h"
#include "observe/best_source.h"
#include "observe/host_observer.h"
#include "report/reporter.h"
#include "test_cgroup_tree.h"

#include <headroom/cgroup_record.h>

#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

namespace {

using namespace headroom;

const std::uint32_t kIdlePeriod = observe::BestSource::Options().idle_read_period;

// A tree of plain directories with a record for each, parents before their children.
class FakeCgroupTree final : public observe::CgroupSource {
 public:
  explicit FakeCgroupTree(unsigned pods) {
    std::string path = std::filesystem::temp_directory_path() / "headroom-turn-XXXXXX";
    if (!mkdtemp(path.data())) bench::die("make " + path);
    root_ = path;
    add(root_, 0);
    const auto kubepods = add(root_ / "kubepods.slice", records_[0].id);
    for (unsigned pod = 0; pod < pods; ++pod)
      add_pod(kubepods, pod);
  }
  ~FakeCgroupTree() override { std::filesystem::remove_all(root_); }

  const std::filesystem::path& root() const { return root_; }

  Result<std::span<const hr_record>> sweep() override {
    ++sweeps_;
    for (std::size_t i = sweeps_ % 10; i < records_.size(); i += 10) {
      records_[i].memory_usage += 4096;
      records_[i].cpu_usage_ns += 1'000'000;
      change_stamps_[i].pass = sweeps_;
    }
    for (std::size_t i = sweeps_ % kIdlePeriod; i < records_.size(); i += kIdlePeriod)
      change_stamps_[i].pass = sweeps_;
    return std::span<const hr_record>(records_);
  }
  ChangeStamps change_stamps() const override { return {change_stamps_, sweeps_}; }
  bool same_cgroups() const override { return sweeps_ > 1; }
  std::uint32_t groups() const override { return kAllGroups; }
  std::string_view name() const override { return "paper"; }
  std::uint64_t lost() const override { return 0; }

 private:
  std::uint64_t add(const std::filesystem::path& path, std::uint64_t parent) {
    std::filesystem::create_directory(path);
    struct stat status {};
    if (stat(path.c_str(), &status) < 0) bench::die("stat " + path.string());
    hr_record record{};
    record.id = status.st_ino;
    record.parent_id = parent;
    record.valid = kAllGroups;
    record.populated = 1;
    record.memory_usage = 64 << 20;
    record.memory_max = HR_NO_LIMIT;
    records_.push_back(record);
    change_stamps_.push_back({.serial = record.id, .cpu_ns = 0, .pass = 1, .populated = 1});
    return record.id;
  }
  void add_pod(std::uint64_t kubepods, unsigned pod) {
    char uid[37];
    std::snprintf(uid, sizeof uid, "%08x_1111_2222_3333_444444444444", pod);
    const auto path = root_ / "kubepods.slice" / ("kubepods-pod" + std::string(uid) + ".slice");
    const std::uint64_t id = add(path, kubepods);
    for (int container = 0; container < 2; ++container)
      add(path / ("container" + std::to_string(container) + ".scope"), id);
  }

  std::filesystem::path root_;
  std::vector<hr_record> records_;
  std::vector<hr_change_stamp> change_stamps_;
  std::uint32_t sweeps_ = 0;
};

// HostObserver owns its source; the tree outlives it.
class ForwardingSource final : public observe::CgroupSource {
 public:
  explicit ForwardingSource(observe::CgroupSource& source) : source_(&source) {}
  Result<std::span<const hr_record>> sweep() override { return source_->sweep(); }
  ChangeStamps change_stamps() const override { return source_->change_stamps(); }
  bool same_cgroups() const override { return source_->same_cgroups(); }
  std::uint32_t groups() const override { return source_->groups(); }
  std::string_view name() const override { return source_->name(); }
  std::uint64_t lost() const override { return source_->lost(); }

 private:
  observe::CgroupSource* source_;
};

// Asked twice in a pass: a pass a second, so that each is shown as well, as in life.
Instant next_instant() {
  static Instant at{std::chrono::hours(1)};
  return at += std::chrono::milliseconds(500);
}

observe::HostObserver observer_of(FakeCgroupTree& tree) {
  auto inventory =
      observe::CgroupInventory::open(tree.root(), observe::CgroupInventory::By::kParent);
  if (!inventory) bench::die(inventory.error().what);
  return observe::HostObserver({.node = observe::NodeSource({.cgroup_root = tree.root()}),
                                .cgroups = std::make_unique<ForwardingSource>(tree),
                                .inventory = std::move(*inventory),
                                .pods_cgroup = "kubepods.slice",
                                .clock = &next_instant});
}

Policy quiet_policy() {
  Policy policy;
  Threshold hard;
  hard.value = Fraction{0.01f};
  policy.thresholds = {hard};
  policy.sweep_period = Duration(0);  // each turn is a sweep
  return policy;
}

// As App::turn(), without the parts that need a host.
void take_turn(daemon::Engine& engine, report::NodeReporter& reporter) {
  engine.start(report::WakeSource::kTimer);
  engine.collect_outcomes();
  engine.observe_and_judge(next_instant());
  engine.act();
  engine.plan();
  reporter.record(engine.cost());
  reporter.report_turn(engine.snapshot(), engine.verdict(), engine.outcomes());
  engine.commit();
}

}  // namespace

int main(int count, char** arguments) {
  unsigned pods = 1000, turns = 20;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string argument = arguments[i];
    (argument == "--pods" ? pods : turns) = static_cast<unsigned>(std::stoul(arguments[i + 1]));
  }
  bench::raise_descriptor_limit();
  FakeCgroupTree tree(pods);
  auto observer = observer_of(tree);
  daemon::InventoryCgroupNames names(observer.inventory());
  auto views = std::make_shared<report::PublishedViews>();
  const Policy policy = quiet_policy();
  report::NodeReporter reporter({.views = views,
                                 .policy = policy,
                                 .audit_log = {},
                                 .names = &names,
                                 .qos_of = &qos_class,
                                 .on_evicted = {}});
  act::DryActuator actuator(&observe::now);
  daemon::Engine engine(policy, observer, actuator,
                        daemon::TurnMeter(&observe::now, &daemon::thread_allocation_count),
                        daemon::SweepSchedule(&observe::thread_cpu_time));
  const std::uint64_t before = daemon::thread_allocation_count();
  for (unsigned turn = 0; turn < turns; ++turn)
    take_turn(engine, reporter);
  std::printf("%u pods, %u turns, %llu allocations\n", pods, turns,
              static_cast<unsigned long long>(daemon::thread_allocation_count() - before));
  return 0;
}
