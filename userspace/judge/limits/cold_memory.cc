// SPDX-License-Identifier: Apache-2.0
#include "judge/limits/cold_memory.h"

#include <algorithm>
#include <chrono>

namespace headroom::judge_limits {
namespace {

constexpr std::int64_t kMinStep = std::int64_t{1} << 20;
constexpr std::int64_t kMostSteps = 8;
constexpr Duration kPause = std::chrono::seconds(1);
constexpr Duration kLongestPause = std::chrono::seconds(60);

std::uint64_t grown(std::uint64_t from, std::uint64_t to) {
  return to > from ? to - from : 0;  // a total that fell counts nothing
}

}  // namespace

std::int64_t plan_cold(const ColdPolicy& policy, const ColdReading& reading, ColdHistory& history) {
  if (reading.at < history.next) return 0;
  const bool first = history.step == 0;
  const std::uint64_t pushed = grown(history.pushed, reading.pushed);
  const std::uint64_t back = first ? 0 : grown(history.refaulted, reading.refaulted);
  history.cost = std::min(history.cost + back, reading.pushed);
  history.refaulted = reading.refaulted;
  history.pushed = reading.pushed;
  const double allowed =
      static_cast<double>(policy.refault_limit) *
      static_cast<double>(std::max<std::uint64_t>(pushed, static_cast<std::uint64_t>(kMinStep)));
  if (static_cast<double>(back) > allowed) {
    history.step = std::max(history.step / 2, kMinStep);
    history.pause = std::min(2 * std::max(history.pause, kPause), kLongestPause);
    history.next = reading.at + history.pause;
    return 0;
  }
  history.step =
      first ? policy.step.count : std::min(history.step * 3 / 2, policy.step.count * kMostSteps);
  history.pause = kPause;
  history.next = reading.at + kPause;
  if (!reading.wanted) return 0;
  const std::int64_t amount = std::min(
      {history.step, reading.usage - reading.request, reading.swap_room.value_or(history.step)});
  return amount >= kMinStep ? amount : 0;
}

}  // namespace headroom::judge_limits
