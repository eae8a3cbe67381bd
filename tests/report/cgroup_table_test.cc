// SPDX-License-Identifier: Apache-2.0
// A table brought up to date from a sweep's news is the one that is made of everything.
#include "report/view/node_view.h"

#include <cstring>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::report {
namespace {

using namespace std::chrono_literals;
using namespace literals;

// Four cgroups swept again and again, of which a pass writes those that are asked for.
class FakeSweeper {
 public:
  FakeSweeper() {
    for (hr_u64 id = 1; id <= 4; ++id) {
      hr_record record;
      std::memset(&record, 0xff, sizeof record);
      record.id = id;
      record.valid = HR_CPU | HR_MEMORY_USAGE;
      record.memory_usage = id << 20;
      record.cpu_usage_ns = 0;
      records_.push_back(record);
    }
    change_stamps_.resize(records_.size());
  }
  Snapshot pass(std::vector<std::size_t> written) {
    ++pass_;
    at_ += 1s;
    for (const std::size_t i : written) {
      records_[i].cpu_usage_ns += 500'000'000;
      records_[i].memory_usage += 4096;
      change_stamps_[i].pass = pass_;
    }
    Snapshot snapshot;
    snapshot.at = at_;
    snapshot.cgroups = records_;
    snapshot.changes = {.change_stamps = change_stamps_, .pass = pass_, .order = order_};
    snapshot.pods = pods;
    return snapshot;
  }
  void swap_places() {
    std::swap(records_[1], records_[2]);
    ++order_;
  }
  std::vector<PodReading> pods;

 private:
  Instant at_{100s};
  std::vector<hr_record> records_;
  std::vector<hr_change_stamp> change_stamps_;
  std::uint32_t pass_ = 0, order_ = 1;
};

// Two buffers by turns, as published.
class Tables {
 public:
  const CgroupTable& take(const Snapshot& snapshot) {
    fill(tables_[turn_ % 2], turn_ ? &tables_[(turn_ - 1) % 2] : nullptr, snapshot, nullptr);
    return tables_[turn_++ % 2];
  }

 private:
  CgroupTable tables_[2];
  std::size_t turn_ = 0;
};

// What a table made of everything holds, with another's idea of the time before.
void expect_all(const CgroupTable& table, const Snapshot& snapshot) {
  ASSERT_EQ(table.records.size(), snapshot.cgroups->size());
  EXPECT_EQ(
      std::memcmp(table.records.data(), snapshot.cgroups->data(), snapshot.cgroups->size_bytes()),
      0);
}

TEST(CgroupTableChanges, RecordsOfBothSweepsAreCopied) {
  FakeSweeper sweeper;
  Tables tables;
  expect_all(tables.take(sweeper.pass({0, 1, 2, 3})), sweeper.pass({}));
  expect_all(tables.take(sweeper.pass({1})), sweeper.pass({}));
  // This buffer has not seen the pass before.
  const Snapshot third = sweeper.pass({2});
  expect_all(tables.take(third), third);
  const Snapshot quiet = sweeper.pass({});
  expect_all(tables.take(quiet), quiet);
}

TEST(CgroupTableChanges, AnIdleCgroupUsesNoCpu) {
  FakeSweeper sweeper;
  Tables tables;
  EXPECT_EQ(tables.take(sweeper.pass({0, 1, 2, 3})).usage_nanocores[1], HR_UNKNOWN);
  const auto& second = tables.take(sweeper.pass({1}));
  EXPECT_EQ(second.usage_nanocores[1], 500'000'000u);
  EXPECT_EQ(second.usage_nanocores[2], 0u);
  const auto& third = tables.take(sweeper.pass({2}));
  EXPECT_EQ(third.usage_nanocores[1], 0u);
  EXPECT_EQ(third.usage_nanocores[2], 500'000'000u);
}

TEST(CgroupTableChanges, AnotherOrderCopiesTheWholeTable) {
  FakeSweeper sweeper;
  Tables tables;
  tables.take(sweeper.pass({0, 1, 2, 3}));
  tables.take(sweeper.pass({}));
  sweeper.swap_places();
  const Snapshot moved = sweeper.pass({});
  expect_all(tables.take(moved), moved);
  expect_all(tables.take(moved), moved);
}

TEST(CgroupTableChanges, APodsRowIsUpdatedWithThePod) {
  FakeSweeper sweeper;
  Tables tables;
  auto pod = std::make_shared<Pod>();
  PodReading reading;
  reading.pod = pod;
  reading.cgroup = CgroupId{2};
  sweeper.pods = {reading};
  tables.take(sweeper.pass({}));
  tables.take(sweeper.pass({}));

  DiskUsage disk;
  disk.containers.push_back({});
  disk.containers[0].logs.used = 5_MiB;
  sweeper.pods[0].disk = &disk;
  ++sweeper.pods[0].measured;
  EXPECT_EQ(tables.take(sweeper.pass({})).pods.at(0).disk, 5_MiB);

  sweeper.pods[0].pod = std::make_shared<Pod>();
  sweeper.pods[0].memory_request = 64_MiB;
  EXPECT_EQ(tables.take(sweeper.pass({})).pods.at(0).memory_request, 64_MiB);
  EXPECT_EQ(tables.take(sweeper.pass({})).pods.at(0).pod, sweeper.pods[0].pod);
  sweeper.pods.clear();
  EXPECT_TRUE(tables.take(sweeper.pass({})).pods.empty());
}

}  // namespace
}  // namespace headroom::report
