// SPDX-License-Identifier: Apache-2.0
// The last minute: what is kept of it, what a frozen copy holds, and the files of such copies.
#include "report/eviction/flight_recorder.h"

#include "ctl/evictions/explain_flight_recording.h"
#include "daemon/turn/allocation_count.h"
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

class FlightRecorderTest : public testing::Test {
 protected:
  void record(std::int64_t ms, std::optional<Bytes> available, bool with_cgroups = true) {
    const Snapshot now = story.snapshot(ms, available, with_cgroups);
    judge(story.policy, now, story.history, story.verdict);
    story.history = story.verdict.after;
    recorder.record(now, story.verdict);
  }
  std::shared_ptr<const FlightRecording> capture(std::int64_t ms) {
    return recorder.capture(story.policy, story.verdict, at_ms(ms));
  }

  Story story{policy()};
  FlightRecorder recorder;
};

TEST(Ring, KeepsTheLatestOldestFirst) {
  Ring<int, 3> ring;
  EXPECT_EQ(ring.size(), 0u);
  for (const int value : {1, 2, 3, 4, 5})
    ring.next_slot() = value;
  ASSERT_EQ(ring.size(), 3u);
  EXPECT_EQ(ring[0], 3);
  EXPECT_EQ(ring[2], 5);
  EXPECT_EQ(ring.newest(), 5);
}

TEST_F(FlightRecorderTest, KeepsASecondApartForTheMinuteAndEveryTurnOfTheEnd) {
  for (std::int64_t ms = 0; ms <= 90'000; ms += 100)
    record(ms, 2_GiB - Bytes{ms << 10});
  const auto flight_recording = capture(90'000);
  ASSERT_EQ(flight_recording->seconds.size(), FlightRecording::kSeconds);
  EXPECT_EQ(flight_recording->seconds[0].at, at_ms(31'000));
  EXPECT_EQ(flight_recording->seconds.newest().at, at_ms(90'000));
  ASSERT_EQ(flight_recording->turns.size(), FlightRecording::kTurns);
  EXPECT_EQ(flight_recording->turns[0].at, at_ms(90'000 - 127 * 100));
}

TEST_F(FlightRecorderTest, RecordsWhichThresholdsWereBelowAndMet) {
  record(0, 900_MiB);
  record(1000, 100_MiB);
  record(2000, std::nullopt);
  const auto flight_recording = capture(2000);
  EXPECT_EQ(flight_recording->turns[0].below, 0b10u) << "the soft one, in its grace";
  EXPECT_EQ(flight_recording->turns[0].met, 0u);
  EXPECT_EQ(flight_recording->turns[1].below, 0b11u);
  EXPECT_EQ(flight_recording->turns[1].met, 0b01u);
  EXPECT_FALSE(flight_recording->turns[2].available[0])
      << "a missing reading is missing here as well";
}

TEST_F(FlightRecorderTest, TheEightLargestPodsAreRecordedLargestFirst) {
  for (int i = 0; i < 12; ++i)
    story.pod("pod" + std::to_string(i), Bytes{(i * 7 % 12) << 20});
  story.record(3).valid = 0;  // 9 MiB, but the value is unknown
  record(0, 2_GiB);
  record(500, 2_GiB, false);
  const auto flight_recording = capture(500);
  ASSERT_EQ(flight_recording->pods.size(), 1u);
  const TopPodsSample& row = flight_recording->pods.newest();
  ASSERT_EQ(row.count, TopPodsSample::kMax);
  std::vector<std::int64_t> held;
  for (const PodMemorySample& pod : row.pods)
    held.push_back(pod.working_set.count >> 20);
  EXPECT_EQ(held, (std::vector<std::int64_t>{11, 10, 8, 7, 6, 5, 4, 3}));
}

TEST_F(FlightRecorderTest, ATurnAllocatesNothing) {
  for (int i = 0; i < 20; ++i)
    story.pod("pod" + std::to_string(i), 1_MiB);
  record(0, 2_GiB);
  const Snapshot now = story.snapshot(1000, 1_GiB);
  const auto before = daemon::thread_allocation_count();
  recorder.record(now, story.verdict);
  EXPECT_EQ(daemon::thread_allocation_count(), before);
}

TEST_F(FlightRecorderTest, CopiesAreBoundedSharedAndReturned) {
  record(0, 2_GiB);
  std::vector<std::shared_ptr<const FlightRecording>> held;
  for (std::int64_t i = 0; i < 3; ++i)
    held.push_back(capture(i * 2000));
  EXPECT_EQ(capture(4500), held[2]);
  EXPECT_EQ(capture(6000), nullptr);
  EXPECT_EQ(recorder.lost(), 1u);
  held[0].reset();
  EXPECT_NE(capture(8000), nullptr);
}

TEST_F(FlightRecorderTest, AllOfItTakesLittleMemory) {
  EXPECT_LT(sizeof(FlightRecording) * (FlightRecorder::kMaxHeld + 1), 512u << 10);
}

TEST_F(FlightRecorderTest, ReadsAsJsonWithTimesBeforeItsEnd) {
  story.pod("hog", 1_GiB);
  record(0, 2_GiB);
  record(70'000, 900_MiB);
  record(71'000, 100_MiB);
  const Json json = Json::parse(flight_recording_json(*capture(71'000), WallTime(1'700'000'000s)));
  EXPECT_EQ(json["time"], "2023-11-14T22:13:20.000000Z");
  ASSERT_EQ(json["turns"].size(), 2u) << "older than a minute is left out";
  EXPECT_EQ(json["turns"][0]["ms"], -1000.0);
  EXPECT_EQ(json["turns"][0]["available"], (Json{{"memory.available", 900 << 20}}));
  EXPECT_EQ(json["turns"][1]["met"], Json::array({0}));
  EXPECT_EQ(json["thresholds"][1]["kind"], "soft");
  EXPECT_EQ(json["pods"][1]["pods"][0]["working_set"], 1 << 30);
  EXPECT_EQ(json["pods"][1]["pods"][0]["stalled_ns"], nullptr);
  const std::string rendered = ctl::render_flight_recording(json, "memory.available", {});
  EXPECT_NE(rendered.find("900Mi █▁ 100Mi"), rendered.npos) << rendered;
  EXPECT_NE(rendered.find("default/hog"), rendered.npos) << rendered;
  EXPECT_EQ(ctl::render_flight_recording(json, "pid.available", {}), "");
}

TEST(Sparkline, LeavesOutWhatIsNotKnown) {
  EXPECT_EQ(ctl::sparkline({0, std::nullopt, 100}), "▁ █");
  EXPECT_EQ(ctl::sparkline({5, 5}), "▁▁");
  EXPECT_EQ(ctl::sparkline({}), "");
}

TEST_F(FlightRecorderTest, TheNewestFilesAreKeptInsideTheirDirectory) {
  const std::filesystem::path home =
      ::testing::TempDir() + "headroom-minutes-" + std::to_string(::getpid());
  record(0, 2_GiB);
  Pod pod;
  pod.uid = "../../etc/uid 1";
  std::string name;
  for (std::size_t i = 0; i < kMaxFlightRecordings + 3; ++i) {
    auto kept = write_flight_recording(home / "evictions.jsonl", *capture(0), pod,
                                       WallTime(1'700'000'000s + std::chrono::seconds(i)));
    ASSERT_TRUE(kept) << kept.error().what;
    name = *kept;
  }
  EXPECT_EQ(name, "minutes/2023-11-14T221426.000000Z-.._.._etc_uid_1.json");
  EXPECT_TRUE(std::filesystem::exists(home / name));
  const auto count = std::distance(std::filesystem::directory_iterator(home / "minutes"), {});
  EXPECT_EQ(static_cast<std::size_t>(count), kMaxFlightRecordings);
  std::filesystem::remove_all(home);
}

TEST_F(FlightRecorderTest, ADirectoryThatCannotBeMadeIsAnError) {
  record(0, 2_GiB);
  const auto kept =
      write_flight_recording("/dev/null/evictions.jsonl", *capture(0), Pod{}, WallTime());
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().what, "create /dev/null/minutes: Not a directory");
}

}  // namespace
}  // namespace headroom::report
