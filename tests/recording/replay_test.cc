// SPDX-License-Identifier: Apache-2.0
// Recordings replayed: by their own policy, by another, damaged and cut short. (Every Story of
// every other test is recorded and replayed as well.)
#include "ctl/common/commands.h"
#include "recording/replayed.h"
#include "recording/replayer.h"
#include "report/golden.h"
#include "support/story.h"

#include <headroom/cgroup_record.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::recording {
namespace {

using namespace test;
using namespace std::chrono_literals;

Policy hard_below(Bytes value) {
  Policy policy;
  policy.thresholds = {memory_below(value)};
  policy.mode = Mode::kEnforce;
  return policy;
}

PolicyOverride by(const Policy& policy) {
  return [policy](const Policy&, ImageStorage) { return policy; };
}

// A hog takes 100 MiB a second of a node until it is killed at 10 s; web stays as it is.
void fill_until_killed(Story& story) {
  const auto hog = story.pod("hog", 0_B);
  story.pod("web", 300_MiB, 500_MiB);
  for (std::int64_t ms = 0; ms <= 10'000; ms += 500) {
    const Bytes held{(ms / 10) << 20};
    story.record(hog).memory_usage = static_cast<std::uint64_t>(held.count);
    story.step(ms, 1100_MiB - held);
  }
  EXPECT_EQ(story.decided(), std::vector<std::string>{"kill hog"});
  story.record(hog).populated = 0;
  story.record(hog).memory_usage = 0;
  for (std::int64_t ms = 10'500; ms <= 15'000; ms += 500)
    story.step(ms, 1100_MiB);
}

TEST(Replay, TheSamePolicyDecidesTheSame) {
  Story story(hard_below(101_MiB));
  fill_until_killed(story);
  const Replayed result = replayed(story.recorded());
  EXPECT_TRUE(result.identical());
  EXPECT_EQ(result.turns, 31u);
  ASSERT_EQ(result.answers.size(), 2u) << "the kill, the end of the eviction";
  EXPECT_EQ(result.answers[0].at, at_ms(10'000));
}

// 100 MiB are left when it kills, of which 50 may not be there.
TEST(Replay, TheErrorOfAReadingIsRecorded) {
  Story story(hard_below(51_MiB));
  story.memory_error = 50_MiB;
  fill_until_killed(story);
  const Replayed result = replayed(story.recorded());
  EXPECT_TRUE(result.identical());
  ASSERT_EQ(result.answers.size(), 2u);
  EXPECT_EQ(result.answers[0].at, at_ms(10'000));
}

TEST(Replay, AHigherThresholdKillsEarlierAndTheRecordedKillIsNotRepeated) {
  Story story(hard_below(101_MiB));
  fill_until_killed(story);
  const Replayed result = replayed(story.recorded(), by(hard_below(501_MiB)));
  EXPECT_FALSE(result.same_acts());
  ASSERT_GE(result.answers.size(), 2u);
  EXPECT_EQ(result.answers[0].at, at_ms(6'000));
  ASSERT_EQ(result.answers[0].replayed.size(), 1u);
  EXPECT_EQ(result.answers[0].replayed[0].pod->name, "hog");
  std::size_t kills = 0;
  for (const ReplayedTurn& answer : result.answers)
    kills += answer.replayed.size();
  EXPECT_EQ(kills, 1u) << "what the hog would have held is available memory from then on";
}

TEST(Replay, ALowerThresholdSparesAndTheMemoryStaysTaken) {
  Story story(hard_below(101_MiB));
  fill_until_killed(story);
  const Replayed result = replayed(story.recorded(), by(hard_below(50_MiB)));
  EXPECT_FALSE(result.same_acts());
  ASSERT_FALSE(result.answers.empty());
  EXPECT_EQ(result.answers[0].recorded.size(), 1u);
  for (const ReplayedTurn& answer : result.answers)
    EXPECT_TRUE(answer.replayed.empty()) << "spared, it stays as it was: 100 MiB are left";
}

TEST(Replay, ObserveInsteadOfEnforcePretends) {
  Story story(hard_below(101_MiB));
  fill_until_killed(story);
  Policy watching = hard_below(101_MiB);
  watching.mode = Mode::kObserve;
  const Replayed result = replayed(story.recorded(), by(watching));
  EXPECT_TRUE(result.answers[0].same_acts);
}

TEST(Replay, ALookTheRecordingDidNotTakeIsTakenFromItsLatestPass) {
  // Only the node is looked at between two passes; the other policy's threshold falls there.
  Story story(hard_below(100_MiB));
  story.pod("hog", 1_GiB);
  story.step(0, 2_GiB);
  const Snapshot node = story.snapshot(500, 900_MiB, false);
  TapeWriter tape;
  std::string bytes;
  TapeWriter::header(bytes, {});
  tape.baseline(bytes, at_ms(0), story.policy, story.history, 0);
  judge(story.policy, story.snapshot(10, 2_GiB), story.history, story.verdict);
  tape.turn(bytes, story.snapshot(10, 2_GiB), story.verdict, {});
  History history = story.verdict.after;
  judge(story.policy, node, history, story.verdict);
  EXPECT_FALSE(story.verdict.needs_cgroups);
  tape.turn(bytes, node, story.verdict, {});
  tape.end(bytes, at_ms(1000), 0);
  const Replayed result = replayed(bytes, by(hard_below(1_GiB)));
  EXPECT_EQ(result.extra_sweeps, 1u);
  ASSERT_EQ(result.answers.size(), 1u);
  EXPECT_EQ(result.answers[0].replayed.at(0).pod->name, "hog");
}

TEST(Replay, AfterALossABaselineSetsItRight) {
  Story story(hard_below(200_MiB));
  story.pod("hog", 1_GiB);
  TapeWriter tape;
  std::string bytes;
  TapeWriter::header(bytes, {});
  tape.baseline(bytes, at_ms(0), story.policy, {}, 0);
  story.step(10, 100_MiB);  // not on this tape: the kill is lost
  tape.baseline(bytes, at_ms(10), story.policy, story.history, 1);
  const Snapshot next = story.snapshot(20, 100_MiB);
  judge(story.policy, next, story.history, story.verdict);
  tape.turn(bytes, next, story.verdict, {});
  tape.end(bytes, at_ms(30), 2);
  const Replayed result = replayed(bytes);
  EXPECT_TRUE(result.identical());
  EXPECT_EQ(result.lost, 3u);
  EXPECT_TRUE(result.answers.empty()) << "the hog is known to be dying";
}

TEST(Replay, ARecordingWithoutItsEndIsReplayedAsFarAsItGoes) {
  Story story(hard_below(101_MiB));
  fill_until_killed(story);
  const std::string whole = story.recorded();
  for (std::size_t size = 20; size < whole.size(); size += 7) {
    auto tape = TapeReader::open(whole.substr(0, size));
    if (!tape) continue;  // not even a header
    const auto result = replay(*tape);
    ASSERT_TRUE(result) << size;
    EXPECT_TRUE(result->cut_short) << size;
    EXPECT_TRUE(result->identical()) << size;
  }
}

// A recording of format 4 differs in its number alone where every pod is described.
TEST(Replay, ARecordingOfTheFormatBeforeIsReplayed) {
  Story story(hard_below(101_MiB));
  fill_until_killed(story);
  std::string bytes = story.recorded();
  ASSERT_EQ(bytes[kMagic.size()], static_cast<char>(kFormat));
  bytes[kMagic.size()] = static_cast<char>(kOldestFormat);
  const Replayed result = replayed(bytes);
  EXPECT_TRUE(result.identical());
  EXPECT_FALSE(result.answers.empty());
}

// A story of memory.available alone, as that format has it: what was added at the end of a baseline
// is cut off.
std::string recorded_in_format(char format, std::size_t added) {
  Story story(hard_below(101_MiB));
  fill_until_killed(story);
  std::string bytes = story.recorded();
  bytes[kMagic.size()] = format;
  const std::size_t frame = bytes.find('B', kMagic.size());
  std::size_t begin = frame + 1, shift = 0, size = 0;
  do
    size |= std::size_t{static_cast<unsigned char>(bytes[begin] & 0x7f)} << shift, shift += 7;
  while (bytes[begin++] & 0x80);
  InternTables none;
  std::string length;
  Writer(length, none, {}).number(size - added);
  return bytes.substr(0, frame + 1) + length + bytes.substr(begin, size - added) +
         bytes.substr(begin + size);
}

TEST(Replay, ARecordingFromBeforeAnAdditionIsReplayed) {
  constexpr std::size_t kKernelMemory = 6;  // an empty sample, trend and reclaim
  constexpr std::size_t kSwap = 12;  // a byte for each member of an empty SwapHistory, and one
  constexpr std::size_t kCpu = 3;    // an absent period, last eviction and sample
  constexpr std::size_t kPodStalls = 1;
  const std::pair<char, std::size_t> formats[] = {{6, kPodStalls + kCpu + kKernelMemory + kSwap},
                                                  {7, kPodStalls + kCpu + kKernelMemory},
                                                  {8, kPodStalls + kCpu},
                                                  {10, kPodStalls}};
  for (const auto& [format, added] : formats) {
    const Replayed result = replayed(recorded_in_format(format, added));
    EXPECT_TRUE(result.identical()) << int{format};
    EXPECT_FALSE(result.answers.empty()) << int{format};
  }
}

TEST(Replay, AReadingOfSwapIsRecorded) {
  Story story(hard_below(101_MiB));
  story.pod("hog", 1_GiB);
  story.swap = SwapReading{.mem_available = (50_MiB).count, .disk = {.total = 1 << 20, .free = 0}};
  story.step(0, 2_GiB);
  ASSERT_FALSE(story.verdict.decisions.empty());
  const std::string whole = story.recorded();
  EXPECT_TRUE(replayed(whole).identical());
  const auto other = [](const Policy& policy, ImageStorage) {
    Policy kubelets = policy;
    kubelets.swap_aware = false;
    return kubelets;
  };
  auto tape = TapeReader::open(whole);
  ASSERT_TRUE(tape);
  const auto result = replay(*tape, other);
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->same_acts()) << "by the kubelet's rule no pod is evicted";
}

TEST(Replay, AnAwaitedDescriptionIsRecorded) {
  Story story(hard_below(101_MiB));
  const auto unknown = story.pod("unknown", 2_GiB);
  story.pod("web", 1_GiB);
  story.reading(unknown).description = PodDescription::kAwaited;
  story.step(0, 100_MiB);
  const Replayed result = replayed(story.recorded());
  EXPECT_TRUE(result.identical());
  EXPECT_FALSE(result.answers.empty());
}

// Of two sweeps, the second with another service and without a slice; after a baseline all anew.
TEST(Replay, SystemUseIsRecordedAndDecidesNothing) {
  SystemUse use;
  use.unaccounted_memory = 7;
  use.reserves.kube.memory = 1 << 20;
  const auto cgroup = [](std::uint64_t id, std::string path, std::uint64_t usage) {
    SystemCgroup made{.id = CgroupId{id}, .path = std::move(path), .role = SystemRole::kOther};
    made.record = unknown_record(id, 1);
    made.record.memory_usage = usage;
    return made;
  };
  Story story(hard_below(101_MiB));
  TapeWriter tape;
  std::string bytes;
  TapeWriter::header(bytes, {});
  tape.baseline(bytes, at_ms(0), story.policy, {}, 0);
  use.at = at_ms(10);
  use.cgroups = {cgroup(1, "/", 10), cgroup(2, "/a.slice", 5)};
  tape.system_use(bytes, use);
  use.at = at_ms(20);
  use.unaccounted_memory.reset();
  use.cgroups = {cgroup(1, "/", 12), cgroup(3, "/b.slice", 6)};
  use.cgroups[0].role = SystemRole::kNode;
  tape.system_use(bytes, use);
  tape.baseline(bytes, at_ms(30), story.policy, {}, 0);
  tape.system_use(bytes, use);
  tape.end(bytes, at_ms(40), 0);
  auto reader = TapeReader::open(bytes);
  ASSERT_TRUE(reader);
  std::vector<SystemUse> read;
  for (auto frame = reader->next(); *frame; frame = reader->next())
    if (const auto* each = std::get_if<SystemUse>(*frame)) read.push_back(*each);
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(read[0].at, at_ms(10));
  EXPECT_EQ(read[0].unaccounted_memory, 7);
  EXPECT_EQ(read[0].reserves, use.reserves);
  EXPECT_EQ(read[0].cgroups.at(1).path, "/a.slice");
  EXPECT_EQ(read[0].cgroups.at(1).record.memory_usage, 5u);
  for (const std::size_t i : {1u, 2u}) {
    EXPECT_EQ(read[i].unaccounted_memory, std::nullopt);
    EXPECT_EQ(read[i].reserves, use.reserves);
    ASSERT_EQ(read[i].cgroups.size(), 2u);
    EXPECT_EQ(read[i].cgroups[0].path, "/");
    EXPECT_EQ(read[i].cgroups[0].role, SystemRole::kNode);
    EXPECT_EQ(read[i].cgroups[0].record.memory_usage, 12u);
    EXPECT_EQ(read[i].cgroups[1].path, "/b.slice");
  }
  EXPECT_TRUE(replayed(bytes).answers.empty());
}

TEST(Replay, WhatIsNoRecordingOrOfAnotherFormatIsRefused) {
  EXPECT_EQ(TapeReader::open("{}").error().what, "not a recording");
  EXPECT_EQ(TapeReader::open(std::string(kMagic) + "\x63").error().what,
            "a recording of another format: replay it with the version that made it");
}

TEST(Replay, DamageIsAnErrorOrNoticedAndNeverMore) {
  Story story(hard_below(101_MiB));
  fill_until_killed(story);
  const std::string whole = story.recorded();
  replay_damaged(whole);
}

TEST(Replay, APassThatHardlyChangesTakesHardlyAnyRoom) {
  Story story(hard_below(1_MiB));
  for (int i = 0; i < 100; ++i)
    story.pod("pod" + std::to_string(i), 10_MiB);
  story.step(0, 2_GiB);
  story.step(5, 2_GiB);
  const std::size_t before = story.recorded().size();
  story.record(3).memory_usage += 4096;
  story.step(10, 2_GiB);
  EXPECT_LT(story.recorded().size() - before, 400u);
}

TEST(ReplayView, ReadsAsTheGoldenText) {
  Story story(hard_below(101_MiB));
  fill_until_killed(story);
  const Replayed other = replayed(story.recorded(), by(hard_below(501_MiB)));
  const Replayed same = replayed(story.recorded());
  constexpr std::int64_t kWall = 1'700'000'000'000'000'000;
  test::expect_golden("top/replay.txt", ctl::render_replay(same, kWall, {}) + '\n' +
                                            ctl::render_replay(other, kWall, {}));
  const auto json = nlohmann::json::parse(ctl::replay_json(other, kWall));
  EXPECT_EQ(json["identical"], false);
  EXPECT_EQ(json["turns"][0]["replayed"][0]["pod"], "default/hog");
  EXPECT_EQ(json["turns"][0]["seconds"], 6.0);
}

}  // namespace
}  // namespace headroom::recording
