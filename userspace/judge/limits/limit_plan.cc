// SPDX-License-Identifier: Apache-2.0
#include "judge/limits/limit_plan.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace headroom::judge_limits {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr double kFillMemory = 2.0;  // seconds in which the fill rate decays by 1/e
// Memory is kept free for so long at the fill rate: seconds.
constexpr double kReserved = 0.1, kRaiseBefore = 0.05, kRaiseBy = 0.2;
// A raised limit stays for so long.
constexpr Duration kRaisedAtLeast = std::chrono::seconds(2);
constexpr Duration kFloor = std::chrono::milliseconds(1);
constexpr Duration kCeiling = std::chrono::milliseconds(100);
constexpr Duration kBraked = std::chrono::milliseconds(5);
// Without a rescue a late reading costs a wait and no process.
constexpr double kExpectedFill = 64.0 * kMiB;

// The kernel rounds down to its page, which is at most 64 KiB on amd64 and arm64.
std::int64_t round_up(std::int64_t bytes) {
  constexpr std::int64_t kPage = 65536;
  return (bytes + kPage - 1) / kPage * kPage;
}

std::int64_t original_of(const LimitReading& reading, const LimitHistory& history) {
  return history.original.value_or(reading.max);
}

std::int64_t filled_in(const LimitHistory& history, double duration, std::int64_t least,
                       std::int64_t most) {
  const double filled = history.fill_rate * duration;
  return static_cast<std::int64_t>(
      std::clamp(filled, static_cast<double>(least), static_cast<double>(std::max(least, most))));
}

bool is_raised(const LimitReading& reading, const LimitHistory& history) {
  return history.original && reading.max > *history.original;
}

// What its tasks need; all of it if the page cache is not known.
std::int64_t needed(const LimitReading& reading) {
  return std::min(reading.held.value_or(reading.usage), reading.usage);
}

std::int64_t background_reclaim(const LimitReading& reading, const LimitHistory& history) {
  const std::int64_t original = original_of(reading, history);
  const std::int64_t reserve =
      filled_in(history, kReserved, std::max(original / 64, 2 * kMiB), original / 8);
  const std::int64_t free = reading.max - reading.usage;
  return free < reserve ? 2 * reserve - free : 0;
}

std::optional<std::int64_t> raised_limit(const LimitPolicy& policy, const LimitReading& reading,
                                         const LimitHistory& history, std::int64_t room) {
  const std::int64_t original = original_of(reading, history);
  const std::int64_t step = filled_in(history, kRaiseBy, original / 16, original / 4);
  const std::int64_t most = std::min(ceiling_of(policy, original), reading.max + room);
  const std::int64_t to = std::min(round_up(reading.max + step), most / 65536 * 65536);
  return to - reading.max >= original / 64 ? std::optional(to) : std::nullopt;
}

// By what is free, never below what is in use with an eighth of the original beside it.
std::optional<std::int64_t> lowered_limit(const LimitPolicy& policy, const LimitReading& reading,
                                          const LimitHistory& history,
                                          std::optional<std::int64_t> room) {
  const std::int64_t original = *history.original;
  const bool urgent = !policy.ceiling || (room && *room < 0);
  if (!urgent && reading.at - history.raised_at < kRaisedAtLeast) return std::nullopt;
  const std::int64_t goal = std::max(original, round_up(reading.usage + original / 4));
  if (goal >= reading.max) return std::nullopt;
  const bool worthwhile = goal == original || reading.max - goal >= original / 16;
  return worthwhile ? std::optional(goal) : std::nullopt;
}

Brake brake_for(const LimitReading& reading, bool can_raise) {
  const std::int64_t free = reading.max - needed(reading);
  if (!can_raise || free > reading.max / 4) return Brake::kOff;
  return free < reading.max / 8 ? Brake::kOn : Brake::kKeep;
}

Duration until_next(const LimitPolicy& policy, const LimitReading& reading,
                    const LimitHistory& history) {
  const double fill = policy.ceiling ? static_cast<double>(policy.fastest_fill)
                                     : std::max(2 * history.fill_rate, kExpectedFill);
  const std::int64_t used = policy.reclaim ? reading.usage : needed(reading);
  const auto free = static_cast<double>(std::max<std::int64_t>(reading.max - used, 0));
  const std::chrono::duration<double> left{std::min(free / 2 / fill, seconds_of(kCeiling))};
  return std::clamp(std::chrono::duration_cast<Duration>(left), kFloor, kCeiling);
}

}  // namespace

LimitHistory advance(const LimitHistory& before, const LimitReading& reading) {
  LimitHistory after = before;
  after.last = reading;
  if (!before.last) return after;
  const double passed = seconds_of(reading.at - before.last->at);
  if (passed <= 0) return after;
  const auto reclaimed = static_cast<double>(reading.reclaimed - before.last->reclaimed);
  const double rate =
      (static_cast<double>(reading.usage - before.last->usage) + reclaimed) / passed;
  after.fill_rate = std::max({rate, before.fill_rate * std::exp(-passed / kFillMemory), 0.0});
  return after;
}

bool is_near_limit(const LimitReading& reading) {
  return reading.max - reading.usage < reading.max / 4;
}

std::int64_t ceiling_of(const LimitPolicy& policy, std::int64_t original) {
  if (!policy.ceiling) return original;
  return static_cast<std::int64_t>(static_cast<double>(original) * *policy.ceiling);
}

std::int64_t brake_of(std::int64_t max) {
  return (max - max / 32) / 65536 * 65536;
}

bool wants_raise(const LimitPolicy& policy, const LimitReading& reading,
                 const LimitHistory& history) {
  if (!policy.ceiling || !reading.held) return false;
  const std::int64_t original = original_of(reading, history);
  const std::int64_t margin =
      filled_in(history, kRaiseBefore, std::max(original / 16, kMiB), original / 4);
  return reading.max - needed(reading) < margin && reading.max < ceiling_of(policy, original);
}

LimitPlan plan_limit(const LimitPolicy& policy, const LimitReading& reading,
                     const LimitHistory& history, std::optional<std::int64_t> room) {
  LimitPlan plan{.next = until_next(policy, reading, history)};
  if (room && wants_raise(policy, reading, history))
    plan.raise_to = raised_limit(policy, reading, history, *room);
  if (is_raised(reading, history) && !plan.raise_to)
    plan.lower_to = lowered_limit(policy, reading, history, room);
  if (policy.reclaim) plan.reclaim = background_reclaim(reading, history);
  if (policy.ceiling || history.original) {
    const bool at_ceiling = reading.max >= ceiling_of(policy, original_of(reading, history));
    const bool refused = wants_raise(policy, reading, history) && room && !plan.raise_to;
    plan.brake = brake_for(reading, policy.ceiling && !at_ceiling && !refused);
    if (plan.brake == Brake::kOn) plan.next = std::min(plan.next, kBraked);
  }
  // Reclaim first: page cache beyond the original limit.
  if (is_raised(reading, history) && !plan.raise_to && !plan.lower_to) {
    const std::int64_t original = *history.original;
    const std::int64_t over = reading.usage - (original - original / 8);
    const std::int64_t cache = reading.usage - needed(reading);
    if (over > 0 && needed(reading) < original - original / 8)
      plan.reclaim = std::max(plan.reclaim, std::min(over, cache));
  }
  return plan;
}

}  // namespace headroom::judge_limits
