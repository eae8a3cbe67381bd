// SPDX-License-Identifier: Apache-2.0
// What the recorder passes on, to which reader, and what it does with a reader that does not read.
#include "daemon/turn/turn_recorder.h"

#include "recording/replayer.h"
#include "support/eventually.h"
#include "support/story.h"

#include <fcntl.h>
#include <unistd.h>

#include <thread>

#include <gtest/gtest.h>

namespace headroom::daemon {
namespace {

using namespace test;
using namespace std::chrono_literals;

struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    from.reset(ends[0]);
    to.reset(ends[1]);
  }
  std::string drain() const {
    std::string all;
    char buffer[4096];
    for (ssize_t n = 0; (n = ::read(from.get(), buffer, sizeof buffer)) > 0;)
      all.append(buffer, static_cast<std::size_t>(n));
    return all;
  }
  Fd from, to;
};

class TurnRecorderTest : public testing::Test {
 protected:
  static Policy policy() {
    Policy policy;
    policy.thresholds = {memory_below(200_MiB)};
    policy.mode = Mode::kEnforce;
    return policy;
  }
  void turn(std::int64_t ms, Bytes available) {
    const Snapshot now = story.snapshot(ms, available);
    judge(story.policy, now, history, verdict);
    std::vector<Outcome> outcomes;
    for (const Decision& decision : verdict.decisions) {
      outcomes.push_back({.decision = decision, .at = now.at});
      record_outcome(outcomes.back(), verdict.after);
    }
    recorder.record_turn(now, verdict, outcomes);
    history = verdict.after;
  }

  Story story{policy()};
  History history;
  Verdict verdict;
  TurnRecorder recorder{policy()};
};

TEST_F(TurnRecorderTest, TurnsDuringTheRecordingAreRecordedCompletely) {
  story.pod("hog", 1_GiB);
  Pipe pipe;
  turn(0, 2_GiB);  // before it was asked for
  ASSERT_TRUE(recorder.start(std::move(pipe.to), 1s));
  for (std::int64_t ms = 10; ms <= 1'100; ms += 10)
    turn(ms, ms < 500 ? 2_GiB : 100_MiB);
  auto tape = recording::TapeReader::open(pipe.drain());
  ASSERT_TRUE(tape) << tape.error().what;
  EXPECT_EQ(tape->header().version, HEADROOM_VERSION);
  const auto replayed = recording::replay(*tape);
  ASSERT_TRUE(replayed) << replayed.error().what;
  EXPECT_EQ(replayed->turns, 99u) << "from the second to a second after the first";
  EXPECT_TRUE(replayed->identical());
  EXPECT_FALSE(replayed->cut_short);
  ASSERT_EQ(replayed->answers.size(), 1u);
  EXPECT_EQ(replayed->answers[0].recorded.at(0).pod->name, "hog");
}

TEST_F(TurnRecorderTest, APolicyChangedInBetweenIsRecordedToo) {
  story.pod("hog", 1_GiB);
  Pipe pipe;
  ASSERT_TRUE(recorder.start(std::move(pipe.to), 1s));
  turn(0, 300_MiB);
  turn(10, 300_MiB);
  Policy stricter = policy();
  stricter.thresholds = {memory_below(400_MiB)};
  history = carry_over(story.policy, history, stricter);
  story.policy = stricter;
  recorder.reconfigure(stricter);
  turn(20, 300_MiB);
  turn(1'001, 2_GiB);
  auto tape = recording::TapeReader::open(pipe.drain());
  const auto replayed = recording::replay(*tape);
  ASSERT_TRUE(replayed) << replayed.error().what;
  EXPECT_TRUE(replayed->identical());
  EXPECT_EQ(replayed->answers.size(), 1u);
}

// Made on another thread, those before the recording are not in it.
TEST_F(TurnRecorderTest, PlansForLimitsAreRecorded) {
  const auto plans = std::make_shared<LimitPlanQueue>();
  TurnRecorder with_limits(policy(), nullptr, plans);
  const auto add = [&](std::size_t count) {
    std::thread([&] {
      for (std::size_t i = 0; i < count; ++i)
        plans->add({});
    }).join();
  };
  const auto turn = [&](std::int64_t ms) {
    const Snapshot now = story.snapshot(ms, 2_GiB);
    judge(story.policy, now, history, verdict);
    with_limits.record_turn(now, verdict, {});
  };
  Pipe pipe;
  add(1);
  turn(0);
  ASSERT_TRUE(with_limits.start(std::move(pipe.to), 1s));
  turn(10);
  add(3);
  turn(20);
  add(LimitPlanQueue::kCapacity + 5);
  turn(1'010);  // the last one
  add(1);
  EXPECT_EQ(with_limits.lost(), 5u);
  auto tape = recording::TapeReader::open(pipe.drain());
  ASSERT_TRUE(tape) << tape.error().what;
  const auto replayed = recording::replay(*tape);
  ASSERT_TRUE(replayed) << replayed.error().what;
  EXPECT_EQ(replayed->limits.plans, 3 + LimitPlanQueue::kCapacity);
  EXPECT_EQ(replayed->limits.lost, 5u);
  EXPECT_TRUE(plans->take({}).plans.empty());
  EXPECT_FALSE(plans->is_on());
}

TEST_F(TurnRecorderTest, OneAtATimeAndForAValidDuration) {
  Pipe first, second, third;
  EXPECT_FALSE(recorder.start(std::move(first.to), 0s));
  Pipe again;
  ASSERT_TRUE(recorder.start(std::move(again.to), 60s));
  EXPECT_EQ(recorder.start(std::move(second.to), 60s).error().what,
            "a recording is in progress; try again when it is over");
}

TEST_F(TurnRecorderTest, AClosedPipeEndsItAndAnotherMayStart) {
  Pipe gone, next_one;
  ASSERT_TRUE(recorder.start(std::move(gone.to), 60s));
  gone.from.reset();
  std::int64_t ms = 0;
  EXPECT_TRUE(test::eventually([&] {
    turn(ms += 10, 2_GiB);
    return recorder.start(Fd(::dup(next_one.to.get())), 60s).has_value();
  }));
}

TEST_F(TurnRecorderTest, LostTurnsAreCountedAndFollowedByANewBaseline) {
  for (int i = 0; i < 1'000; ++i)
    story.pod("pod" + std::to_string(i), 1_MiB);
  Pipe pipe;  // without a reader yet
  ASSERT_TRUE(recorder.start(std::move(pipe.to), 1000s));
  std::int64_t ms = 0;
  for (; recorder.lost() == 0 && ms < 100'000; ms += 10) {
    for (std::size_t i = 0; i < 1'000; ++i)  // every record changes in every field
      for (std::size_t word = 3; word < 60; ++word)
        reinterpret_cast<hr_u64*>(&story.record(i))[word] += static_cast<hr_u64>(ms) << 40;
    turn(ms, 2_GiB);
  }
  ASSERT_GT(recorder.lost(), 0u);
  std::string bytes;
  std::thread reader([&] { bytes = pipe.drain(); });
  std::this_thread::sleep_for(300ms);
  for (int i = 0; i < 5; ++i)
    turn(ms += 10, 2_GiB);
  turn(2'000'000, 2_GiB);
  reader.join();
  auto tape = recording::TapeReader::open(std::move(bytes));
  ASSERT_TRUE(tape);
  const auto replayed = recording::replay(*tape);
  ASSERT_TRUE(replayed) << replayed.error().what;
  EXPECT_EQ(replayed->lost, recorder.lost());
  EXPECT_FALSE(replayed->cut_short);
}

}  // namespace
}  // namespace headroom::daemon
