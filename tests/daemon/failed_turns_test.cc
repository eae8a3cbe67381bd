// SPDX-License-Identifier: Apache-2.0
// A loop whose every turn throws ends; one that recovers goes on.
#include "daemon/loop.h"

#include <systemd/sd-event.h>

#include <functional>
#include <stdexcept>

#include <gtest/gtest.h>

namespace headroom::daemon {
namespace {

// An event loop as the daemon's: each turn schedules the next, whatever became of it.
struct TurnLoop {
  FailedTurns failed_turns;
  std::function<void(int)> turn;
  int turns = 0;
  static constexpr int kTurns = 12;

  // The exit status of the loop.
  int run() {
    sd_event* event = nullptr;
    EXPECT_GE(sd_event_new(&event), 0);
    sd_event_source* source = nullptr;
    EXPECT_GE(sd_event_add_defer(event, &source, &on_turn, this), 0);
    sd_event_source_set_enabled(source, SD_EVENT_ON);
    const int status = sd_event_loop(event);
    sd_event_source_unref(source);
    sd_event_unref(event);
    return status;
  }
  static int on_turn(sd_event_source* source, void* data) {
    auto* loop = static_cast<TurnLoop*>(data);
    sd_event* const event = sd_event_source_get_event(source);
    if (!loop->failed_turns.run([loop] { loop->turn(++loop->turns); })) sd_event_exit(event, 1);
    if (loop->turns == kTurns) sd_event_exit(event, 0);
    return 0;
  }
};

TEST(FailedTurns, ALoopWhoseEveryTurnThrowsEnds) {
  TurnLoop loop{.failed_turns = {}, .turn = [](int) { throw std::runtime_error("broken"); }};
  EXPECT_EQ(loop.run(), 1);
  EXPECT_EQ(loop.turns, FailedTurns::kLimit);
}

TEST(FailedTurns, OneGoodTurnStartsTheCountAgain) {
  TurnLoop loop{.failed_turns = {}, .turn = [](int turn) {
                  if (turn % FailedTurns::kLimit != 0) throw std::runtime_error("broken");
                }};
  EXPECT_EQ(loop.run(), 0);
  EXPECT_EQ(loop.turns, TurnLoop::kTurns);
}

}  // namespace
}  // namespace headroom::daemon
