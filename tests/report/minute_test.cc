// SPDX-License-Identifier: Apache-2.0
// The last minute: what is kept of it, what a frozen copy holds, and the files of such copies.
#include "report/minute.h"

#include "ctl/explain_minute.h"
#include "daemon/allocations.h"
#include "report/minute_json.h"
#include "support/story.h"

#include <unistd.h>

#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

using namespace headroom::test;
using namespace std::chrono_literals;
using Json = nlohmann::json;

Policy policy() {
  Policy policy;
  policy.thresholds = {memory_below(200_MiB), memory_below(1_GiB, 30s)};
  return policy;
}

class MinuteTest : public testing::Test {
 protected:
  void note(std::int64_t ms, std::optional<Bytes> available, bool with_cgroups = true) {
    const Snapshot now = story.snapshot(ms, available, with_cgroups);
    judge(story.policy, now, story.history, story.verdict);
    story.history = story.verdict.after;
    recorder.note(now, story.verdict);
  }
  std::shared_ptr<const Minute> freeze(std::int64_t ms) {
    return recorder.freeze(story.policy, story.verdict, at_ms(ms));
  }

  Story story{policy()};
  MinuteRecorder recorder;
};

TEST(Ring, KeepsTheLatestOldestFirst) {
  Ring<int, 3> ring;
  EXPECT_EQ(ring.size(), 0u);
  for (const int value : {1, 2, 3, 4, 5})
    ring.next() = value;
  ASSERT_EQ(ring.size(), 3u);
  EXPECT_EQ(ring[0], 3);
  EXPECT_EQ(ring[2], 5);
  EXPECT_EQ(ring.newest(), 5);
}

TEST_F(MinuteTest, KeepsASecondApartForTheMinuteAndEveryTurnOfTheEnd) {
  for (std::int64_t ms = 0; ms <= 90'000; ms += 100)
    note(ms, 2_GiB - Bytes{ms << 10});
  const auto minute = freeze(90'000);
  ASSERT_EQ(minute->seconds.size(), Minute::kSeconds);
  EXPECT_EQ(minute->seconds[0].at, at_ms(31'000));
  EXPECT_EQ(minute->seconds.newest().at, at_ms(90'000));
  ASSERT_EQ(minute->turns.size(), Minute::kTurns);
  EXPECT_EQ(minute->turns[0].at, at_ms(90'000 - 127 * 100));
}

TEST_F(MinuteTest, KnowsWhichThresholdsWereBelowAndWhichMet) {
  note(0, 900_MiB);
  note(1000, 100_MiB);
  note(2000, std::nullopt);
  const auto minute = freeze(2000);
  EXPECT_EQ(minute->turns[0].below, 0b10u) << "the soft one, in its grace";
  EXPECT_EQ(minute->turns[0].met, 0u);
  EXPECT_EQ(minute->turns[1].below, 0b11u);
  EXPECT_EQ(minute->turns[1].met, 0b01u);
  EXPECT_FALSE(minute->turns[2].available[0]) << "a missing reading is missing here as well";
}

TEST_F(MinuteTest, TheEightWhoHoldMostAreKeptMostFirst) {
  for (int i = 0; i < 12; ++i)
    story.pod("pod" + std::to_string(i), Bytes{(i * 7 % 12) << 20});
  story.record(3).valid = 0;  // 9 MiB, but nobody knows
  note(0, 2_GiB);
  note(500, 2_GiB, false);
  const auto minute = freeze(500);
  ASSERT_EQ(minute->pods.size(), 1u);
  const MinutePods& row = minute->pods.newest();
  ASSERT_EQ(row.count, MinutePods::kMost);
  std::vector<std::int64_t> held;
  for (const MinutePod& pod : row.pods)
    held.push_back(pod.working_set.count >> 20);
  EXPECT_EQ(held, (std::vector<std::int64_t>{11, 10, 8, 7, 6, 5, 4, 3}));
}

TEST_F(MinuteTest, ATurnAllocatesNothing) {
  for (int i = 0; i < 20; ++i)
    story.pod("pod" + std::to_string(i), 1_MiB);
  note(0, 2_GiB);
  const Snapshot now = story.snapshot(1000, 1_GiB);
  const auto before = daemon::allocations_on_this_thread();
  recorder.note(now, story.verdict);
  EXPECT_EQ(daemon::allocations_on_this_thread(), before);
}

TEST_F(MinuteTest, CopiesAreFewSharedByNeighboursAndGivenBack) {
  note(0, 2_GiB);
  std::vector<std::shared_ptr<const Minute>> held;
  for (std::int64_t i = 0; i < 3; ++i)
    held.push_back(freeze(i * 2000));
  EXPECT_EQ(freeze(4500), held[2]);
  EXPECT_EQ(freeze(6000), nullptr);
  EXPECT_EQ(recorder.lost(), 1u);
  held[0].reset();
  EXPECT_NE(freeze(8000), nullptr);
}

TEST_F(MinuteTest, AllOfItTakesLittleMemory) {
  EXPECT_LT(sizeof(Minute) * (MinuteRecorder::kFrozen + 1), 512u << 10);
}

TEST_F(MinuteTest, ReadsAsJsonWithTimesBeforeItsEnd) {
  story.pod("hog", 1_GiB);
  note(0, 2_GiB);
  note(70'000, 900_MiB);
  note(71'000, 100_MiB);
  const Json json = Json::parse(minute_text(*freeze(71'000), WallTime(1'700'000'000s)));
  EXPECT_EQ(json["time"], "2023-11-14T22:13:20.000000Z");
  ASSERT_EQ(json["turns"].size(), 2u) << "older than a minute is left out";
  EXPECT_EQ(json["turns"][0]["ms"], -1000.0);
  EXPECT_EQ(json["turns"][0]["available"], (Json{{"memory.available", 900 << 20}}));
  EXPECT_EQ(json["turns"][1]["met"], Json::array({0}));
  EXPECT_EQ(json["thresholds"][1]["kind"], "soft");
  EXPECT_EQ(json["pods"][1]["pods"][0]["working_set"], 1 << 30);
  EXPECT_EQ(json["pods"][1]["pods"][0]["stalled_ns"], nullptr);
  const std::string told = ctl::minute_told(json, "memory.available", {});
  EXPECT_NE(told.find("900Mi █▁ 100Mi"), told.npos) << told;
  EXPECT_NE(told.find("default/hog"), told.npos) << told;
  EXPECT_EQ(ctl::minute_told(json, "pid.available", {}), "");
}

TEST(Sparkline, LeavesOutWhatIsNotKnown) {
  EXPECT_EQ(ctl::sparkline({0, std::nullopt, 100}), "▁ █");
  EXPECT_EQ(ctl::sparkline({5, 5}), "▁▁");
  EXPECT_EQ(ctl::sparkline({}), "");
}

TEST_F(MinuteTest, TheNewestFilesAreKeptInsideTheirDirectory) {
  const std::filesystem::path home =
      ::testing::TempDir() + "headroom-minutes-" + std::to_string(::getpid());
  note(0, 2_GiB);
  Pod pod;
  pod.uid = "../../etc/uid 1";
  std::string name;
  for (std::size_t i = 0; i < kMinutesKept + 3; ++i) {
    auto kept = keep_minute(home / "evictions.jsonl", *freeze(0), pod,
                            WallTime(1'700'000'000s + std::chrono::seconds(i)));
    ASSERT_TRUE(kept) << kept.error().what;
    name = *kept;
  }
  EXPECT_EQ(name, "minutes/2023-11-14T221426.000000Z-.._.._etc_uid_1.json");
  EXPECT_TRUE(std::filesystem::exists(home / name));
  const auto count = std::distance(std::filesystem::directory_iterator(home / "minutes"), {});
  EXPECT_EQ(static_cast<std::size_t>(count), kMinutesKept);
  std::filesystem::remove_all(home);
}

TEST_F(MinuteTest, ADirectoryThatCannotBeMadeIsAnError) {
  note(0, 2_GiB);
  const auto kept = keep_minute("/dev/null/evictions.jsonl", *freeze(0), Pod{}, WallTime());
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().what, "create /dev/null/minutes: Not a directory");
}

}  // namespace
}  // namespace headroom::report
