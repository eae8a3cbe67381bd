// SPDX-License-Identifier: Apache-2.0
// The inside of pods, on real cgroups of the running kernel.
#include "observe/pod/parts_reader.h"

#include "base/process_stat.h"
#include "support/test_cgroup.h"

#include <headroom/cgroup_record.h>

#include <sys/mman.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <map>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

using test::TestCgroup;

constexpr Instant kNow{std::chrono::seconds(100)};

// A child that holds so much, once it does.
pid_t holder(TestCgroup& cgroup, std::size_t bytes) {
  int ready[2];
  EXPECT_EQ(::pipe(ready), 0);
  const pid_t pid = cgroup.spawn([&] {
    void* held = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memset(held, 1, bytes);
    (void)!::write(ready[1], "r", 1);
    for (;;)
      ::pause();
  });
  char byte = 0;
  EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  ::close(ready[0]);
  ::close(ready[1]);
  return pid;
}

class PartsReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = test::writable_cgroup2();
    if (!root_) GTEST_SKIP() << "needs root and a writable cgroup v2 mount";
  }

  // A slice of pods with one pod, named as the kubelet names them, and two containers.
  void make() {
    pods_ = std::make_unique<TestCgroup>("partspods");
    pod_ = std::make_unique<TestCgroup>(*pods_, "pod" + kUid);
    app_ = std::make_unique<TestCgroup>(*pod_, "app");
    worker_ = std::make_unique<TestCgroup>(*app_, "worker");
    side_ = std::make_unique<TestCgroup>(*pod_, "side");
  }
  void TearDown() override {
    for (auto* each : {&side_, &worker_, &app_, &pod_, &pods_})
      each->reset();
  }

  PodParts read(EvictionUnit unit, const Waits& waits = {}, bool limits = false) {
    auto inventory = CgroupInventory::open(*root_);
    EXPECT_TRUE(inventory);
    std::vector<hr_record> records;
    std::map<CgroupId, std::uint64_t> parents{{pods_->id(), 1},
                                              {pod_->id(), pods_->id().value},
                                              {app_->id(), pod_->id().value},
                                              {worker_->id(), app_->id().value},
                                              {side_->id(), pod_->id().value}};
    for (const TestCgroup* each : {&*pods_, &*pod_, &*app_, &*worker_, &*side_}) {
      records.push_back(unknown_record(each->id().value, parents[each->id()]));
      records.back().populated = 1;
      if (each == &*app_) app_limits_(records.back());
    }
    inventory->update(records);
    PodRegistry registry{PodCgroupParser(pods_->path().substr(root_->size() + 1))};
    inventory->each(
        [&](const KnownCgroup& cgroup) { registry.add_cgroup(cgroup.id, cgroup.path); });
    const auto record_of = [&](CgroupId id) -> const hr_record* {
      for (const hr_record& record : records)
        if (record.id == id.value) return &record;
      return nullptr;
    };
    const auto pods = registry.read(record_of);
    PartsReader reader;
    reader.set_options({.unit = unit, .limits = limits});
    reader.set_targets(pods, *inventory, registry);
    reader.read(kNow, record_of, waits);
    EXPECT_EQ(pods.size(), 1u);
    return pods.empty() || !pods[0].parts ? PodParts{} : *pods[0].parts;
  }
  void set_group(const TestCgroup& cgroup) {
    std::ofstream(cgroup.path() + "/memory.oom.group") << "1";
  }
  static bool has_memory(const TestCgroup& cgroup) {
    return std::ifstream(cgroup.path() + "/memory.oom.group").good();
  }

  // Sets what the record of `app_` contains of its limits.
  std::function<void(hr_record&)> app_limits_ = [](hr_record&) {};
  const std::string kUid = "12345678-1234-1234-1234-123456789abc";
  std::optional<std::string> root_;
  std::unique_ptr<TestCgroup> pods_, pod_, app_, worker_, side_;
};

TEST_F(PartsReaderTest, NothingIsReadUnasked) {
  make();
  EXPECT_TRUE(read(EvictionUnit::kPod).parts.empty());
}

TEST_F(PartsReaderTest, ContainersAreTheCgroupsBelowThePod) {
  make();
  const PodParts parts = read(EvictionUnit::kContainer);
  ASSERT_EQ(parts.parts.size(), 2u);
  EXPECT_EQ(parts.parts[0].cgroup, app_->id());
  EXPECT_EQ(parts.parts[1].cgroup, side_->id());
  EXPECT_FALSE(parts.largest) << "it is not asked for";
}

TEST_F(PartsReaderTest, TheLargestProcessIsFoundHoweverDeep) {
  make();
  side_->spawn_sleeping_child();
  holder(*app_, 4 << 20);
  const pid_t largest = holder(*worker_, 16 << 20);
  const PodParts parts = read(EvictionUnit::kProcess);
  ASSERT_TRUE(parts.largest);
  EXPECT_EQ(parts.largest->name.pid, largest);
  EXPECT_EQ(parts.largest->cgroup, worker_->id());
  EXPECT_GE(parts.largest->held, 16_MiB);
  EXPECT_EQ(parts.largest->group, CgroupId{});
}

TEST_F(PartsReaderTest, TheHighestGroupIsTheOneThatDies) {
  make();
  if (!has_memory(*app_)) GTEST_SKIP() << "no memory controller below the root here";
  holder(*worker_, 8 << 20);
  set_group(*worker_);
  EXPECT_EQ(read(EvictionUnit::kProcess).largest->group, worker_->id());
  EXPECT_EQ(read(EvictionUnit::kProcess).parts.size(), 3u) << "it can be killed";
  set_group(*app_);
  EXPECT_EQ(read(EvictionUnit::kProcess).largest->group, app_->id());
  set_group(*pod_);
  EXPECT_TRUE(read(EvictionUnit::kProcess).oom_group);
}

TEST_F(PartsReaderTest, MemoryHighIsKnownTogetherWithMemoryMax) {
  make();
  const auto app = [&](hr_u64 high, hr_u64 max) {
    app_limits_ = [=](hr_record& record) {
      record.valid |= HR_MEMORY_LIMITS;
      record.memory_high = high;
      record.memory_max = max;
    };
    return read(EvictionUnit::kPod, {}, true).parts.at(0);
  };
  const PartReading both = app(40 << 20, 64 << 20);
  EXPECT_EQ(both.high, 40_MiB);
  EXPECT_EQ(both.max, 64_MiB);
  const PartReading unlimited = app(40 << 20, HR_NO_LIMIT);
  EXPECT_EQ(unlimited.high, 40_MiB);
  EXPECT_EQ(unlimited.max, std::nullopt);
  EXPECT_EQ(app(40 << 20, HR_UNKNOWN).high, std::nullopt)
      << "how far it may be raised is not known";
}

TEST_F(PartsReaderTest, WaitsAreSummedByContainer) {
  make();
  const std::uint64_t ids[] = {app_->id().value, worker_->id().value, pods_->id().value};
  hr_stalls stalls[3] = {};
  for (int i = 0; i < 3; ++i)
    stalls[i].causes[HR_STALL_HIGH].ns = static_cast<std::uint64_t>(i + 1);
  Waits waits;
  waits.stalls = ByCgroup<hr_stalls>{ids, stalls};
  const PodParts parts = read(EvictionUnit::kPod, waits, true);
  ASSERT_EQ(parts.parts.size(), 2u);
  EXPECT_EQ(parts.parts[0].stalled, Duration(3));
  EXPECT_EQ(parts.parts[1].stalled, Duration(0));
  EXPECT_EQ(parts.stalled, Duration(3));
  EXPECT_FALSE(read(EvictionUnit::kPod, {}, true).stalled) << "not watched is not known";
  // A wait was lost, because a map was full: absence says nothing.
  waits.stalls->lost = 1;
  const PodParts some = read(EvictionUnit::kPod, waits, true);
  ASSERT_EQ(some.parts.size(), 2u);
  EXPECT_EQ(some.parts[0].stalled, Duration(3));
  EXPECT_FALSE(some.parts[1].stalled);
  EXPECT_FALSE(some.stalled);
}

}  // namespace
}  // namespace headroom::observe
