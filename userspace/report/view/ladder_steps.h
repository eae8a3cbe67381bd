// SPDX-License-Identifier: Apache-2.0
// The names of ladder steps and of their outcomes, and the steps of the last minute.
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
// "started" counts every step that was not refused immediately.
inline constexpr std::size_t kLadderOutcomes = 4;
inline constexpr std::array<std::string_view, kLadderOutcomes> kLadderOutcomeNames{
    "started", "done", "failed", "dry_run"};
enum class LadderOutcome : std::uint8_t { kStarted, kDone, kFailed, kDryRun };
// `act` must be a step of the ladder: is_ladder(act).
constexpr std::size_t ladder_step(Act act) {
  return static_cast<std::size_t>(act) - static_cast<std::size_t>(Act::kReclaimCache);
}

using LadderStepCounts = std::array<std::uint32_t, kLadderSteps>;

// The steps started in the last minute, so that an eviction shows what was tried before.
class RecentLadderSteps {
 public:
  static constexpr Duration kWindow = std::chrono::seconds(60);
  static constexpr std::size_t kMax = 256;  // beyond that the oldest are dropped

  void record(Act act, Instant at) { steps_[next_++ % kMax] = {act, at}; }
  LadderStepCounts before(Instant at) const {
    LadderStepCounts counts{};
    for (const Step& step : steps_)
      if (step.at != Instant{} && step.at <= at && at - step.at <= kWindow)
        ++counts[ladder_step(step.act)];
    return counts;
  }

 private:
  struct Step {
    Act act = Act::kReclaimCache;
    Instant at{};
  };
  std::array<Step, kMax> steps_{};
  std::size_t next_ = 0;
};

}  // namespace headroom::report
