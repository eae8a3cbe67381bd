// SPDX-License-Identifier: Apache-2.0
// An eviction is in the audit log once, wherever the daemon dies between its end and its line.
#include "config/temp_dir.h"
#include "daemon/state/eviction_state.h"
#include "report/sample.h"
#include "support/crash_points.h"
#include "support/eventually.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::daemon {
namespace {

namespace fs = std::filesystem;

struct RecordedOnceTest : ::testing::Test {
  void SetUp() override { fs::create_directories(state); }

  report::AuditSetup setup() const { return {.file = log, .unwritten_file = unwritten}; }

  static report::Eviction ended() {
    report::Eviction eviction = test::sample_eviction();
    eviction.ending = report::Ending::kEvicted;
    return eviction;
  }
  static History with_victim() {
    const report::Eviction eviction = ended();
    History history;
    history.victims.push_back({.pod = eviction.decision.pod,
                               .cgroup = eviction.decision.cgroup,
                               .reason = eviction.decision.reason,
                               .phase = Victim::Phase::kKilled,
                               .terminated_at = eviction.terminated_at,
                               .killed_at = eviction.killed_at,
                               .deadline = eviction.ended_at});
    return history;
  }

  // The turns of a daemon that has seen the end of the eviction.
  void record_end() const {
    EvictionState saved(state);
    saved.save(with_victim(), true);
    report::AuditLog audit(setup());
    report::Eviction eviction = ended();
    ASSERT_TRUE(audit.submit(eviction));
    saved.save({}, audit.all_kept());
    ASSERT_TRUE(test::eventually([&] { return audit.all_kept(); }));
    saved.save({}, audit.all_kept());
  }

  // The next daemon: what it resumes has ended meanwhile.
  void start_again() const {
    report::AuditLog audit(setup());
    EvictionState saved(state);
    for (const Victim& victim :
         saved.load_victims([&] { return report::recorded_evictions(log, unwritten); })) {
      EXPECT_EQ(victim.cgroup, ended().decision.cgroup);
      report::Eviction eviction = ended();
      EXPECT_TRUE(audit.submit(eviction));
    }
  }

  std::ptrdiff_t lines() const {
    std::ifstream file(log);
    return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
  }

  const test::TempDir dir;
  const fs::path state = dir.path() / "state", log = dir.path() / "log" / "evictions.jsonl",
                 unwritten = state / "evictions-unwritten.jsonl";
};

TEST_F(RecordedOnceTest, WhereverTheDaemonDies) {
  const int writes =
      test::crash_at_every_write({.prepare =
                                      [&] {
                                        fs::remove_all(state);
                                        fs::remove_all(log.parent_path());
                                        fs::create_directories(state);
                                        EvictionState(state).save(with_victim(), true);
                                      },
                                  .work = [&] { record_end(); },
                                  .check =
                                      [&] {
                                        start_again();
                                        EXPECT_EQ(lines(), 1);
                                      }});
  EXPECT_GE(writes, 6) << "the saved state twice, the kept line, the line, and their files";
}

TEST_F(RecordedOnceTest, AVictimIsSavedUntilItsEndIsRecorded) {
  EvictionState saved(state);
  saved.save(with_victim(), true);
  const auto in_state = [&] {
    return EvictionState(state)
        .load_victims([] { return std::vector<report::RecordedEviction>{}; })
        .size();
  };
  saved.save({}, false);
  EXPECT_EQ(in_state(), 1u);
  saved.save({}, false);
  EXPECT_EQ(in_state(), 1u);
  saved.save({}, true);
  EXPECT_EQ(in_state(), 0u);
}

TEST_F(RecordedOnceTest, AnotherKillOfTheSameCgroupIsAnotherEviction) {
  EvictionState(state).save(with_victim(), true);
  const report::Eviction eviction = ended();
  report::RecordedEviction earlier{.cgroup = eviction.decision.cgroup,
                                   .terminated_at = eviction.terminated_at,
                                   .killed_at = eviction.killed_at - std::chrono::nanoseconds(1)};
  const auto loaded = [&] {
    return EvictionState(state).load_victims([&] { return std::vector{earlier}; }).size();
  };
  EXPECT_EQ(loaded(), 1u);
  earlier.killed_at = eviction.killed_at;
  EXPECT_EQ(loaded(), 0u);
}

TEST_F(RecordedOnceTest, OnlyARecordOfWhatIsGoneCounts) {
  fs::create_directories(log.parent_path());
  report::Eviction timed_out = ended();
  timed_out.ending = report::Ending::kTimedOut;
  std::ofstream(log) << report::audit_line(timed_out, {}, nullptr, "")
                     << "no JSON\n[]\n{\"outcome\": \"evicted\"}\n"
                     << "{\"outcome\": \"evicted\", \"cgroup\": 3, \"instants_ns\": []}\n";
  EXPECT_TRUE(report::recorded_evictions(log, unwritten).empty());
  std::ofstream(unwritten) << report::audit_line(ended(), {}, nullptr, "");
  const auto recorded = report::recorded_evictions(log, unwritten);
  ASSERT_EQ(recorded.size(), 1u);
  EXPECT_EQ(recorded[0].killed_at, ended().killed_at);
  EXPECT_EQ(recorded[0].cgroup, ended().decision.cgroup);
}

}  // namespace
}  // namespace headroom::daemon
