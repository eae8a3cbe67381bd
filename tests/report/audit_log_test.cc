// SPDX-License-Identifier: Apache-2.0
// The record of an eviction, and a disk that does not take it.
#include "report/eviction/audit_log.h"

#include "report/sample.h"
#include "support/eventually.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

using namespace std::chrono_literals;
using namespace headroom::test;
using Json = nlohmann::json;

WallTime wall(Instant instant) {
  return WallTime(1'700'000'000s) +
         std::chrono::duration_cast<WallTime::duration>(instant.time_since_epoch());
}

class Directory {
 public:
  Directory() : path_(::testing::TempDir() + "headroom-audit-" + std::to_string(::getpid())) {
    std::filesystem::remove_all(path_);
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  std::filesystem::path operator/(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

std::vector<Json> records_in(const std::filesystem::path& file) {
  std::vector<Json> records;
  std::ifstream log(file);
  for (std::string line; std::getline(log, line);)
    records.push_back(Json::parse(line));
  return records;
}

// Written, and no longer kept for the next start.
bool log_is_complete(const AuditLog& log, std::uint64_t written) {
  return log.stats().written == written && log.stats().waiting == 0;
}

TEST(AuditLine, HasReadingsDecisionActionsAndReturnedMemory) {
  const Json line = Json::parse(audit_line(sample_eviction(), wall(sample_at(1'012)), nullptr));
  EXPECT_EQ(line["time"], "2023-11-14T22:13:21.012000Z");
  EXPECT_EQ(line["boot_ns"], 1'012'000'000);
  EXPECT_EQ(line["outcome"], "evicted");
  EXPECT_EQ(line["pod"], Json({{"namespace", "default"},
                               {"name", "hog"},
                               {"uid", "uid-hog"},
                               {"qos", "BestEffort"},
                               {"priority", 0}}));
  EXPECT_EQ(line["cgroup"]["id"], 3);
  EXPECT_EQ(line["cgroup"]["path"], "/kubepods.slice/kubepods-poduid_hog.slice");
  EXPECT_EQ(line["signal"], "memory.available");
  EXPECT_EQ(line["kind"], "hard");
  EXPECT_EQ(line["threshold"], 100 << 20);
  EXPECT_EQ(line["available"], 52 << 20);
  EXPECT_EQ(line["capacity"], std::int64_t{4} << 30);
  EXPECT_EQ(line["instants_ns"]["last_clear"], 1'000'000'000);
  EXPECT_EQ(line["instants_ns"]["terminated"], nullptr) << "there was no SIGTERM";
  EXPECT_EQ(line["latency"]["crossing_to_decision_ms"], 12.0);
  EXPECT_EQ(line["latency"]["first_seen_to_decision_ms"], 2.0);
  EXPECT_EQ(line["latency"]["decision_to_signal_ms"], 1.0);
  EXPECT_EQ(line["latency"]["signal_to_exit_ms"], 85.0);
  EXPECT_EQ(line["memory_returned"], 1 << 30);
  EXPECT_EQ(line["error"], nullptr);
  EXPECT_EQ(line["allocations"], 0);
}

TEST(AuditLine, RanksEveryCandidateWithItsSelection) {
  const Json line = Json::parse(audit_line(sample_eviction(), {}, nullptr));
  ASSERT_EQ(line["ranking"].size(), 2u);
  EXPECT_EQ(line["ranking"][0]["selection"], "chosen");
  EXPECT_EQ(line["ranking"][0]["over_request"], 1 << 30);
  EXPECT_EQ(line["ranking"][1]["selection"], "outranked");
  EXPECT_EQ(line["ranking"][1]["usage"], nullptr) << "unknown is not zero";
  EXPECT_EQ(line["ranking"][1]["over_request"], nullptr);
  EXPECT_EQ(line["ranking"][1]["request"], 512 << 20);
}

TEST(AuditLine, AVictimThatTimedOutIsNotGone) {
  Eviction eviction = sample_eviction();
  eviction.ending = Ending::kTimedOut;
  const Json line = Json::parse(audit_line(eviction, {}, nullptr));
  EXPECT_EQ(line["outcome"], "timed_out");
  EXPECT_EQ(line["latency"]["signal_to_exit_ms"], nullptr);
}

TEST(AuditLine, AFailureNamesItsError) {
  Eviction eviction = sample_eviction();
  eviction.ending = Ending::kFailed;
  eviction.error = EPERM;
  EXPECT_EQ(Json::parse(audit_line(eviction, {}, nullptr))["error"], "Operation not permitted");
}

TEST(AuditLine, AHostileNameStaysOneLineOfValidJson) {
  auto pod = sample_pod("a\n\xff\"b", QosClass::kBurstable);
  Eviction eviction = sample_eviction();
  eviction.decision.pod = pod;
  const std::string line = audit_line(eviction, {}, nullptr);
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  EXPECT_TRUE(Json::accept(line));
}

TEST(AuditLine, QosIsComputedWhereItIsNotDeclared) {
  auto pod = sample_pod("hog", QosClass::kBurstable);
  pod->declared_qos.reset();
  Eviction eviction = sample_eviction();
  eviction.decision.pod = pod;
  EXPECT_EQ(Json::parse(audit_line(eviction, {}, nullptr))["pod"]["qos"], "");
  const QosOf guaranteed = [](const Pod&) { return QosClass::kGuaranteed; };
  EXPECT_EQ(Json::parse(audit_line(eviction, {}, guaranteed))["pod"]["qos"], "Guaranteed");
}

TEST(AuditLog, MakesItsDirectoryAndAppends) {
  const Directory directory;
  const auto file = directory / "deep/evictions.jsonl";
  for (int life = 0; life < 2; ++life) {
    AuditLog log({.file = file, .wall_time = wall});
    Eviction eviction = sample_eviction();
    EXPECT_TRUE(log.submit(eviction));
    EXPECT_EQ(eviction.decision.pod, nullptr) << "the record was handed over";
  }
  const auto records = records_in(file);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0]["time"], "2023-11-14T22:13:21.012000Z");
}

TEST(AuditLog, AFullDiskIsCountedAndNeverACrash) {
  AuditLog log({.file = "/dev/full"});
  Eviction eviction = sample_eviction();
  EXPECT_TRUE(log.submit(eviction));
  EXPECT_TRUE(test::eventually([&] { return log.stats().failed_writes > 0; }));
  EXPECT_EQ(log.stats().written, 0u);
  EXPECT_EQ(log.stats().waiting, 1u);
}

TEST(AuditLog, UnwrittenLinesAreWrittenWhenTheDiskAcceptsThem) {
  const Directory directory;
  const auto file = directory / "evictions.jsonl";
  std::filesystem::create_directories(file);  // a directory where the file should be
  AuditLog log({.file = file, .retry_period = 20ms});
  for (int i = 0; i < 3; ++i) {
    Eviction eviction = sample_eviction();
    EXPECT_TRUE(log.submit(eviction));
  }
  EXPECT_TRUE(test::eventually([&] { return log.stats().failed_writes > 1; }));
  std::filesystem::remove(file);
  EXPECT_TRUE(test::eventually([&] { return log.stats().written == 3; }));
  EXPECT_EQ(records_in(file).size(), 3u);
  EXPECT_EQ(log.stats().lost, 0u);
}

// As after kill -9 while the disk is full.
TEST(AuditLog, TheNextDaemonWritesWhatThisOneCouldNot) {
  const Directory directory;
  const auto file = directory / "evictions.jsonl", kept = directory / "unwritten.jsonl";
  std::filesystem::create_directories(file);  // a directory where the file should be
  {
    AuditLog log({.file = file, .unwritten_file = kept, .retry_period = 1h});
    for (int i = 0; i < 2; ++i) {
      Eviction eviction = sample_eviction();
      EXPECT_TRUE(log.submit(eviction));
    }
    EXPECT_TRUE(test::eventually([&] { return log.stats().failed_writes > 0; }));
  }
  std::filesystem::remove(file);
  AuditLog next({.file = file, .unwritten_file = kept});
  EXPECT_TRUE(test::eventually([&] { return log_is_complete(next, 2); }));
  EXPECT_EQ(records_in(file).size(), 2u);
  EXPECT_FALSE(std::filesystem::exists(kept));
}

// It ended between the write and the removal of the kept lines, and in the middle of another.
TEST(AuditLog, ALineThatWasWrittenIsNotWrittenAgain) {
  const Directory directory;
  const auto file = directory / "evictions.jsonl", kept = directory / "unwritten.jsonl";
  const std::string line = audit_line(sample_eviction(), wall(sample_at(1'012)), nullptr);
  const std::string other = audit_line(sample_eviction(), wall(sample_at(1'013)), nullptr);
  ASSERT_TRUE(append_lines(file, line));
  ASSERT_TRUE(append_lines(kept, line + other + line.substr(0, 20)));
  AuditLog next({.file = file, .unwritten_file = kept});
  EXPECT_TRUE(test::eventually([&] { return log_is_complete(next, 1); }));
  EXPECT_EQ(records_in(file).size(), 2u);
  EXPECT_FALSE(std::filesystem::exists(kept));
}

TEST(AuditLog, TheOldestIsLostAndCountedWhenTheDiskStaysFull) {
  AuditLog log({.file = "/dev/full", .retry_period = 1h});
  constexpr std::size_t kMore = 5;
  for (std::size_t i = 0; i < AuditLog::kMaxUnwritten + kMore; ++i) {
    const auto failed = log.stats().failed_writes;
    Eviction eviction = sample_eviction();
    ASSERT_TRUE(log.submit(eviction));
    ASSERT_TRUE(test::eventually([&] { return log.stats().failed_writes > failed; }));
  }
  EXPECT_EQ(log.stats().lost, kMore);
  EXPECT_EQ(log.stats().waiting, AuditLog::kMaxUnwritten);
}

TEST(AuditLog, WithoutAFileThereIsNothingToDo) {
  AuditLog log({.file = ""});
  Eviction eviction = sample_eviction();
  EXPECT_TRUE(log.submit(eviction));
  EXPECT_EQ(log.stats().waiting, 0u);
}

TEST(AppendLines, ErrorsNameTheFailedAction) {
  const auto full = append_lines("/dev/full", "line\n");
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().what, "append to /dev/full: No space left on device");
  const auto nowhere = append_lines("/proc/no/such/evictions.jsonl", "line\n");
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().what, "create /proc/no/such: No such file or directory");
}

}  // namespace
}  // namespace headroom::report
