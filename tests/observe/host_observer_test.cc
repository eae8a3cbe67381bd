// SPDX-License-Identifier: Apache-2.0
// The host as snapshots, on a cgroup tree of plain files.
#include "observe/host_observer.h"

#include "observe/cgroup/cgroupfs_source.h"
#include "support/fake_cgroupfs.h"

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

using test::FakeCgroup;
using test::FakeCgroupfs;

const std::string kUid = "11111111-2222-4333-8444-555555555555";
const std::string kTier = "kubepods.slice/kubepods-besteffort.slice";
const std::string kPodName = "kubepods-besteffort-pod11111111_2222_4333_8444_555555555555.slice";

Instant time_now(std::chrono::seconds(100));
Instant ticking() {
  return time_now += std::chrono::milliseconds(1);
}

std::int64_t cpus_online = 4;

FakeCgroup tree() {
  FakeCgroup pod = test::full_cgroup(kPodName);
  FakeCgroup tier = test::full_cgroup("kubepods-besteffort.slice");
  tier.children = {pod};
  FakeCgroup pods = test::full_cgroup("kubepods.slice");
  pods.children = {tier};
  FakeCgroup root = test::full_cgroup("root");
  root.children = {pods, test::full_cgroup("system.slice")};
  return root;
}

class HostObserverTest : public testing::Test {
 protected:
  std::unique_ptr<CgroupSource> files() {
    auto cgroups = CgroupfsSource::open(
        {.root = fake.root(), .groups = kAllGroups, .descriptors = 64, .root_is_real = false});
    EXPECT_TRUE(cgroups);
    return std::move(*cgroups);
  }
  HostObserver observer(std::unique_ptr<CgroupSource> cgroups,
                        std::unique_ptr<WaitSource> waits = nullptr) {
    auto inventory = CgroupInventory::open(fake.root(), CgroupInventory::By::kParent);
    EXPECT_TRUE(inventory);
    NodeSource::Options node;
    node.cgroup_root = fake.root();
    node.clock = &ticking;
    return HostObserver({.node = NodeSource(node),
                         .cgroups = std::move(cgroups),
                         .inventory = std::move(*inventory),
                         .pods_cgroup = "kubepods.slice",
                         .waits = std::move(waits),
                         .cpus = 4,
                         .online_cpus = [] { return cpus_online; },
                         .clock = &ticking});
  }
  HostObserver observer() { return observer(files()); }

  FakeCgroupfs fake{tree()};
};

TEST_F(HostObserverTest, APodIsJoinedToItsManifestAndItsRecord) {
  auto host = observer();
  Pod pod;
  pod.uid = kUid;
  pod.name = "web";
  host.set_declared_pods({pod});
  const Snapshot snapshot = host.take_snapshot(SnapshotScope::kCgroups);
  ASSERT_TRUE(snapshot.cgroups);
  EXPECT_EQ(snapshot.cgroups->size(), 5u);
  ASSERT_EQ(snapshot.pods.size(), 1u);
  EXPECT_EQ(snapshot.pods[0].pod->name, "web");
  EXPECT_EQ(snapshot.pods[0].cgroup.value, fake.id(kTier + "/" + kPodName));
  ASSERT_NE(snapshot.pods[0].record, nullptr);
  EXPECT_EQ(snapshot.pods[0].record->id, snapshot.pods[0].cgroup.value);
}

TEST_F(HostObserverTest, AManifestReadLaterRenamesThePod) {
  auto host = observer();
  EXPECT_EQ(host.take_snapshot(SnapshotScope::kCgroups).pods[0].pod->source,
            PodSource::kCgroupTree);
  Pod pod;
  pod.uid = kUid;
  pod.name = "late";
  host.set_declared_pods({pod});
  EXPECT_EQ(host.take_snapshot(SnapshotScope::kCgroups).pods[0].pod->name, "late");
}

TEST_F(HostObserverTest, AVanishedPodIsNoLongerThere) {
  auto host = observer();
  ASSERT_EQ(host.take_snapshot(SnapshotScope::kCgroups).pods.size(), 1u);
  fake.remove(kTier + "/" + kPodName);
  fake.write("", "cgroup.stat", "nr_descendants 3\nnr_dying_descendants 0\n");
  EXPECT_TRUE(host.take_snapshot(SnapshotScope::kCgroups).pods.empty());
}

TEST_F(HostObserverTest, ANodeLookTellsTheSignalAndNoPods) {
  auto host = observer();
  const Snapshot snapshot = host.take_snapshot(SnapshotScope::kNode);
  EXPECT_FALSE(snapshot.cgroups);
  EXPECT_TRUE(snapshot.pods.empty());
  const auto& memory = of(snapshot.observations, Signal::kMemoryAvailable);
  ASSERT_TRUE(memory);
  EXPECT_LE(memory->at, snapshot.at) << "no sample is younger than its snapshot";
  EXPECT_EQ(memory->error, 2 * 64 * 4 * 4096) << "files alone cannot flush for certain";
}

TEST_F(HostObserverTest, AReadingThatFailsIsMissingAndCounted) {
  fake.write("", "memory.stat", "anon nonsense\n");
  auto host = observer();
  EXPECT_FALSE(of(host.take_snapshot(SnapshotScope::kNode).observations, Signal::kMemoryAvailable));
  EXPECT_EQ(host.missing_readings(), 1u);
}

// Of a virtual machine that is given more.
TEST_F(HostObserverTest, CpusThatComeWhileItRunsAreCounted) {
  auto host = observer();
  const auto error = [&](SnapshotScope depth) {
    return of(host.take_snapshot(depth).observations, Signal::kMemoryAvailable)->error;
  };
  EXPECT_EQ(error(SnapshotScope::kCgroups), 2 * 64 * 4 * 4096);
  cpus_online = 64;
  EXPECT_EQ(error(SnapshotScope::kCgroups), 2 * 64 * 4 * 4096) << "a moment ago";
  time_now += std::chrono::seconds(10);
  EXPECT_EQ(error(SnapshotScope::kNode), 2 * 64 * 4 * 4096) << "not at each look";
  EXPECT_EQ(error(SnapshotScope::kCgroups), 2 * 64 * 64 * 4096);
  EXPECT_EQ(host.cpus(), 64);
  cpus_online = -1;
  time_now += std::chrono::seconds(10);
  EXPECT_EQ(error(SnapshotScope::kCgroups), 2 * 64 * 64 * 4096) << "unknown: as before";
  cpus_online = 4;
}

// The pods' cgroup has a limit, so its own signal is read at every look, not with each pass only.
TEST_F(HostObserverTest, AllocatableMemoryIsFreshBetweenPasses) {
  auto host = observer();
  const auto swept = of(host.take_snapshot(SnapshotScope::kCgroups).observations,
                        Signal::kAllocatableMemoryAvailable);
  ASSERT_TRUE(swept);
  fake.write("kubepods.slice", "memory.current", "0\n");
  const auto looked = of(host.take_snapshot(SnapshotScope::kNode).observations,
                         Signal::kAllocatableMemoryAvailable);
  ASSERT_TRUE(looked);
  EXPECT_GT(looked->at, swept->at);
  EXPECT_GT(looked->available, swept->available);
}

// Waits of which some are lost.
class LossyWaits final : public WaitSource {
 public:
  explicit LossyWaits(const std::uint64_t& lost) : lost_(&lost) {}
  Waits read(SnapshotScope) override {
    Waits waits;
    waits.node_stalls = &node_;
    waits.stalls = ByCgroup<hr_stalls>{.ids = {}, .values = {}, .lost = *lost_};
    return waits;
  }
  std::uint64_t failed() const override { return 0; }

 private:
  const std::uint64_t* lost_;
  hr_stalls node_{};
};

TEST_F(HostObserverTest, WhileWaitsAreLostItIsUnknownWhichPodsWaited) {
  std::uint64_t lost = 0;
  auto host = observer(files(), std::make_unique<LossyWaits>(lost));
  host.watch_without_swap(true);
  const auto stalled = [&] {
    const Snapshot snapshot = host.take_snapshot(SnapshotScope::kCgroups);
    EXPECT_TRUE(snapshot.swap);
    return snapshot.swap ? snapshot.swap->pods_stalled_micros : std::nullopt;
  };
  EXPECT_EQ(stalled(), 0u);
  lost = 3;
  EXPECT_EQ(stalled(), std::nullopt);
  EXPECT_EQ(stalled(), 0u) << "none was lost since then";
}

// A kernel whose memory.stat lags: a flush shows that 1 MiB more is in use.
class LaggingSource final : public CgroupSource {
 public:
  // `reads_root`: the flush says so itself, and the file goes on lagging.
  LaggingSource(std::unique_ptr<CgroupSource> files, FakeCgroupfs& fake, bool reads_root)
      : files_(std::move(files)), fake_(&fake), reads_root_(reads_root) {}
  Result<std::span<const hr_record>> sweep() override { return files_->sweep(); }
  std::uint32_t groups() const override { return files_->groups(); }
  std::string_view name() const override { return "lagging"; }
  std::uint64_t lost() const override { return 0; }
  bool flush_memory() override {
    root_.valid = HR_MEMORY_STAT;
    root_.anon = 5242880;
    if (!reads_root_) fake_->write("", "memory.stat", "anon 5242880\nfile 0\ninactive_file 0\n");
    return true;
  }
  bool flushes_memory() const override { return true; }
  const hr_record* flushed_root() const override { return reads_root_ ? &root_ : nullptr; }

 private:
  std::unique_ptr<CgroupSource> files_;
  FakeCgroupfs* fake_;
  bool reads_root_;
  hr_record root_{};
};

class FlushTest : public HostObserverTest {
 protected:
  void expect_that_memory_is_read_after_a_flush(bool reads_root);
};

void FlushTest::expect_that_memory_is_read_after_a_flush(bool reads_root) {
  fake.write("", "memory.stat", "anon 4194304\nfile 0\ninactive_file 0\n");
  auto host = observer(std::make_unique<LaggingSource>(files(), fake, reads_root));
  const auto available = [&] {
    return of(host.take_snapshot(SnapshotScope::kNode).observations, Signal::kMemoryAvailable)
        ->available;
  };
  const std::int64_t before = available();
  Policy policy;
  policy.fastest_fill = 0;
  policy.thresholds = {{.signal = Signal::kMemoryAvailable, .value = Quantity{}}};
  Verdict verdict;
  verdict.thresholds.resize(1);
  const std::int64_t error = 2 * 64 * 4 * 4096;
  verdict.thresholds[0].limit = before - error - 1;
  host.set_limits(policy, verdict);
  EXPECT_EQ(available(), before) << "further from it than the reading can be wrong";
  EXPECT_EQ(host.flushes(), 0u);
  verdict.thresholds[0].limit = before - error;
  host.set_limits(policy, verdict);
  EXPECT_EQ(available(), before - (1 << 20));
  EXPECT_EQ(host.flushes(), 1u);
  EXPECT_EQ(
      of(host.take_snapshot(SnapshotScope::kNode).observations, Signal::kMemoryAvailable)->error,
      0);
}

TEST_F(FlushTest, NearALimitMemoryIsReadAfterOne) {
  expect_that_memory_is_read_after_a_flush(false);
}

TEST_F(FlushTest, NearALimitMemoryIsWhatTheFlushSays) {
  expect_that_memory_is_read_after_a_flush(true);
}

TEST(FlushPlan, TakesATwentiethOfACpuAtMost) {
  FlushPlan plan(256, 4096);
  EXPECT_EQ(plan.error(), 128 << 20);
  Policy policy;
  policy.fastest_fill = 0;
  policy.thresholds = {{.signal = Signal::kMemoryAvailable, .value = Quantity{}},
                       {.signal = Signal::kKernelMemAvailable, .value = Quantity{}}};
  Verdict verdict;
  verdict.thresholds.resize(2);
  verdict.thresholds[0].limit = 100 << 20;
  verdict.thresholds[1].index = 1;
  verdict.thresholds[1].limit = std::int64_t{1} << 40;
  plan.set_limits(policy, verdict);
  const Instant at(std::chrono::seconds(10));
  using std::chrono::milliseconds;
  const auto seen = [](std::int64_t available) {
    return Observation{.available = available, .capacity = std::int64_t{1} << 40, .at = {}};
  };
  EXPECT_TRUE(plan.due(seen(228 << 20), at));
  EXPECT_FALSE(plan.due(seen((228 << 20) + 1), at));
  EXPECT_TRUE(plan.due(seen(0), at)) << "below the limit it may be wrong as well";
  EXPECT_FALSE(plan.due(seen(std::int64_t{1} << 40), at)) << "MemAvailable needs no flush";
  EXPECT_FALSE(plan.due(std::nullopt, at));
  Duration took{};
  int flushes = 0;
  for (Instant now = at; now < at + std::chrono::seconds(10); now += milliseconds(1))
    if (plan.due(seen(0), now)) {
      plan.record(now, now + milliseconds(2));
      took += milliseconds(2);
      ++flushes;
    }
  EXPECT_LE(took, (std::chrono::seconds(10) + FlushPlan::kSaved) / FlushPlan::kShareOfCpu +
                      milliseconds(2));
  EXPECT_GE(flushes, 250);
}

// One threshold, of memory.available. Bytes, and bytes a second.
void set_memory_limit(FlushPlan& plan, std::int64_t limit, std::int64_t fastest_fill) {
  Policy policy;
  policy.fastest_fill = fastest_fill;
  policy.thresholds = {{.signal = Signal::kMemoryAvailable, .value = Quantity{}}};
  Verdict verdict;
  verdict.thresholds.resize(1);
  verdict.thresholds[0].limit = limit;
  plan.set_limits(policy, verdict);
}

// On 7.2 in the lab a flush took between 0.02 and 2.7 ms, because the other CPU's work lay between.
// Where each put off the next one by 19 times as much, two looks 8 ms apart read the same, and the
// guard was armed for more than was left: an eviction came 11 ms late.
TEST(FlushPlan, IsDueAtEachLookJustBeforeALimitIsCrossed) {
  FlushPlan plan(2, 4096);
  set_memory_limit(plan, 100 << 20, 0);
  const Observation seen{.available = 101 << 20, .capacity = std::int64_t{1} << 30, .at = {}};
  using std::chrono::microseconds;
  Instant now(std::chrono::seconds(10));
  for (int look = 0; look < 20; ++look) {
    EXPECT_TRUE(plan.due(seen, now)) << look;
    plan.record(now, now + microseconds(1500));
    EXPECT_FALSE(plan.due(seen, now + microseconds(2000))) << "the decision of the same turn";
    now += microseconds(3000);
  }
}

// Readers flush nothing while another's flush is interrupted; the kernel of 7.2 showed readings of
// 20 MiB too much for 20 ms beside a program that removes cgroups.
TEST(FlushPlan, IsDueWhereMemoryFillsUpWhileAnotherFlushIsInterrupted) {
  FlushPlan plan(2, 4096);
  set_memory_limit(plan, 400 << 20, std::int64_t{1} << 30);
  const std::int64_t near = plan.error() + 171798691;  // 1 GiB/s for 160 ms
  const auto seen = [&](std::int64_t left) {
    return Observation{
        .available = (400 << 20) + left, .capacity = std::int64_t{2} << 30, .at = {}};
  };
  EXPECT_TRUE(plan.due(seen(near), Instant{}));
  EXPECT_FALSE(plan.due(seen(near + 1), Instant{}));
}

TEST_F(HostObserverTest, ADecisionReadsTheSignalAndThePodsInOnePass) {
  fake.write("", "memory.stat",
             "anon 4194304\nfile 2097152\ninactive_file 1048576\ninactive_anon 0\nactive_anon 0\n"
             "active_file 0\nunevictable 0\n");
  auto host = observer();
  const Snapshot node = host.take_snapshot(SnapshotScope::kNode);
  const Snapshot decision = host.take_snapshot(SnapshotScope::kDecision);
  const auto& before = of(node.observations, Signal::kMemoryAvailable);
  const auto& after = of(decision.observations, Signal::kMemoryAvailable);
  ASSERT_TRUE(before && after);
  EXPECT_EQ(after->available, before->available);
  EXPECT_GT(after->at, before->at);
  const hr_record& root = decision.cgroups->front();
  EXPECT_EQ(after->available, after->capacity - static_cast<std::int64_t>(root.anon + root.file -
                                                                          root.inactive_file));
}

// Of a pass and from nothing else: the root's file says something else meanwhile.
TEST_F(HostObserverTest, APassReadsTheSignalFromItsOwnRecord) {
  class Record final : public CgroupSource {
   public:
    Result<std::span<const hr_record>> sweep() override { return std::span<const hr_record>(all_); }
    std::uint32_t groups() const override { return HR_MEMORY_STAT; }
    std::string_view name() const override { return "record"; }
    std::uint64_t lost() const override { return 0; }
    hr_record& root() { return all_.front(); }

   private:
    std::vector<hr_record> all_{unknown_record(1, 0)};
  };
  fake.write("", "memory.stat", "anon 4194304\nfile 0\ninactive_file 0\n");
  auto source = std::make_unique<Record>();
  hr_record& root = source->root();
  auto host = observer(std::move(source));
  const auto used = [&] {
    const Snapshot snapshot = host.take_snapshot(SnapshotScope::kCgroups);
    const auto& memory = of(snapshot.observations, Signal::kMemoryAvailable);
    return memory ? memory->capacity - memory->available : -1;
  };
  EXPECT_EQ(used(), 4194304) << "a record without it: the file";
  root.valid = HR_MEMORY_STAT;
  root.anon = 1048576, root.file = root.inactive_file = 0;
  EXPECT_EQ(used(), 1048576);
  fake.write("", "memory.stat", "anon nonsense\n");
  EXPECT_EQ(used(), 1048576);
  EXPECT_EQ(host.missing_readings(), 0u);
}

TEST_F(HostObserverTest, AFailedPassStillReadsTheSignal) {
  class Failing final : public CgroupSource {
   public:
    Result<std::span<const hr_record>> sweep() override { return failure("none today"); }
    std::uint32_t groups() const override { return 0; }
    std::string_view name() const override { return "failing"; }
    std::uint64_t lost() const override { return 0; }
  };
  auto host = observer(std::make_unique<Failing>());
  const Snapshot snapshot = host.take_snapshot(SnapshotScope::kCgroups);
  EXPECT_FALSE(snapshot.cgroups);
  EXPECT_TRUE(of(snapshot.observations, Signal::kMemoryAvailable));
  EXPECT_EQ(host.missing_readings(), 1u) << "the pass";
}

TEST_F(HostObserverTest, ADecisionReadsSwapAgain) {
  auto host = observer();
  host.watch_without_swap(true);
  const auto first = host.take_snapshot(SnapshotScope::kNode).swap;
  const auto held = host.take_snapshot(SnapshotScope::kNode).swap;
  const auto decision = host.take_snapshot(SnapshotScope::kDecision).swap;
  ASSERT_TRUE(first && held && decision);
  EXPECT_EQ(held->at, first->at);
  EXPECT_GT(decision->at, first->at);
}

}  // namespace
}  // namespace headroom::observe
