// SPDX-License-Identifier: Apache-2.0
// The ladder's acts by the names they are counted under, and how each came out.
#pragma once

#include <headroom/decision.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace headroom::report {

inline constexpr std::size_t kLadderSteps = 4;
inline constexpr std::array<std::string_view, kLadderSteps> kLadderStepNames{"reclaim", "squeeze",
                                                                             "relax", "restore"};
// Those begun are all that were tried and not refused at once.
inline constexpr std::size_t kLadderEnds = 4;
inline constexpr std::array<std::string_view, kLadderEnds> kLadderEndNames{"begun", "done",
                                                                           "failed", "pretended"};
enum class LadderEnd : std::uint8_t { kBegun, kDone, kFailed, kPretended };
// Of an act that is_ladder().
constexpr std::size_t ladder_step(Act act) {
  return static_cast<std::size_t>(act) - static_cast<std::size_t>(Act::kTakeCache);
}

using LadderTally = std::array<std::uint32_t, kLadderSteps>;

// The steps begun in the last minute, so that an eviction can tell what was tried before.
class ClimbedSteps {
 public:
  static constexpr Duration kWindow = std::chrono::seconds(60);
  static constexpr std::size_t kMost = 256;  // beyond that the oldest are forgotten

  void note(Act act, Instant at) { steps_[next_++ % kMost] = {act, at}; }
  LadderTally before(Instant at) const {
    LadderTally tally{};
    for (const Step& step : steps_)
      if (step.at != Instant{} && step.at <= at && at - step.at <= kWindow)
        ++tally[ladder_step(step.act)];
    return tally;
  }

 private:
  struct Step {
    Act act = Act::kTakeCache;
    Instant at{};
  };
  std::array<Step, kMost> steps_{};
  std::size_t next_ = 0;
};

}  // namespace headroom::report
