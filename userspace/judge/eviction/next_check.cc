// SPDX-License-Identifier: Apache-2.0
#include "judge/eviction/next_check.h"

#include "judge/eviction/ladder.h"
#include "judge/eviction/no_execute.h"
#include "judge/eviction/node_reclaim.h"
#include "judge/eviction/threshold/swap_aware.h"

#include <algorithm>
#include <cmath>

namespace headroom::judge_eviction {
namespace {

using std::chrono::duration;
using std::chrono::duration_cast;
using std::chrono::milliseconds;

constexpr double kTrendMemory = 1.0;  // seconds: the weight of a sample decays by 1/e in this time
constexpr duration<double> kForecastHorizon{3600};
// A fork storm on every CPU of a large machine, in tasks per second.
constexpr double kFastestFork = 100'000;
// Swap fills at a device's rate, tasks at the kernel's: no need to look more often than this.
constexpr Duration kSlowFloor = milliseconds(20);
// Soft thresholds are graced in seconds: seeing one cross a moment late costs nothing.
constexpr Duration kSoftFloor = milliseconds(100);
// A dying pod is watched so closely; each look is a pass over every cgroup, on a CPU that the dying
// processes may need. Where the kernel reports that a cgroup is empty, no look is needed for that.
constexpr Duration kShortestVictimPeriod = milliseconds(5), kLongestVictimPeriod = milliseconds(20);
// At the highest rate, so many looks are taken before the memory that is left is used up.
constexpr int kLooksAtMemoryLeft = 4;
// A threshold that is met while no pod can be evicted is checked again this often.
constexpr Duration kRetryPeriod = milliseconds(100);

Trend update_trend(const Trend& was, const Observation& seen) {
  if (!was.last) return Trend{seen, 0};
  const double seconds = seconds_of(seen.at - was.last->at);
  if (seconds <= 0) return was;
  const double slope = static_cast<double>(seen.available - was.last->available) / seconds;
  const double weight = 1 - std::exp(-seconds / kTrendMemory);
  return Trend{seen, was.per_second + weight * (slope - was.per_second)};
}

std::optional<Duration> time_to(const ThresholdReading& reading, const Trend& trend) {
  if (!reading.limit || !reading.available || trend.per_second >= 0) return std::nullopt;
  if (*reading.available <= *reading.limit) return Duration::zero();
  const auto distance = static_cast<double>(*reading.available - *reading.limit);
  const duration<double> left{distance / -trend.per_second};
  if (left > kForecastHorizon) return std::nullopt;
  return duration_cast<Duration>(left);
}

// Of the signal's unit per second; absent: a disk, which does not fill in milliseconds, or what is
// taken over a window.
std::optional<double> fastest_fill(const Policy& policy, Signal signal) {
  if (is_share_of_time(signal)) return std::nullopt;
  switch (condition_of(signal)) {
    case Condition::kMemoryPressure:
      return static_cast<double>(policy.fastest_fill);
    case Condition::kPidPressure:
      return kFastestFork;
    case Condition::kDiskPressure:
    case Condition::kCpuPressure:
      return std::nullopt;
  }
  return std::nullopt;
}

// Whether swap decides the signal's value: then it can fall while the working set does not grow,
// and no faster than pages are written to swap. While the kubelet's value is the smaller, memory is
// used up before swap is (memory_left()).
bool is_by_swap_room(const Verdict& verdict, Signal signal) {
  const auto& room = verdict.swap_room;
  return is_node_memory(signal) && room && room->in_force &&
         room->bound != SwapRoom::Bound::kKubelet;
}

// How long this threshold may safely go unwatched.
Duration time_until_check(const Policy& policy, const ThresholdReading& reading,
                          const Verdict& verdict, Instant at) {
  const Threshold& threshold = policy.thresholds[reading.index];
  if (!reading.available || !reading.limit) return policy.check_ceiling;
  if (reading.met) return kRetryPeriod;
  if (reading.below_since)
    return std::max<Duration>(*reading.below_since + threshold.grace - at, Duration::zero());
  const auto fastest = fastest_fill(policy, threshold.signal);
  if (!fastest) return policy.check_ceiling;
  const auto distance = static_cast<double>(*reading.available - *reading.limit);
  const auto left = duration_cast<Duration>(duration<double>(distance / *fastest));
  const bool fast = is_memory(threshold.signal) && !is_by_swap_room(verdict, threshold.signal);
  const Duration floor = fast ? Duration::zero() : kSlowFloor;
  return std::max(left, threshold.hard() ? floor : kSoftFloor);
}

// The node's memory, while it is above this threshold. The guard does not see what swap gains.
bool is_guarded(const Policy& policy, const ThresholdReading& reading, const Verdict& verdict) {
  const Signal signal = policy.thresholds[reading.index].signal;
  const bool with_swap = verdict.swap_room && verdict.swap_room->gain > 0;
  if (signal == Signal::kKernelMemAvailable && with_swap) return false;
  return is_node_memory(signal) && !is_by_swap_room(verdict, signal) && !reading.met &&
         !reading.below_since && reading.available && reading.limit;
}

Duration victim_period(const Policy& policy, const Verdict& verdict) {
  Duration period = kLongestVictimPeriod;
  for (const ThresholdReading& reading : verdict.thresholds) {
    if (!is_memory(policy.thresholds[reading.index].signal) || !reading.available) continue;
    const auto left = static_cast<double>(*reading.available);
    const duration<double> until_used_up{left / static_cast<double>(policy.fastest_fill)};
    period = std::min(period, duration_cast<Duration>(until_used_up / kLooksAtMemoryLeft));
  }
  return std::max(period, kShortestVictimPeriod);
}

Duration time_until_victim_step(const Policy& policy, const Verdict& verdict, Instant at) {
  Duration soonest = policy.check_ceiling;
  const Duration period = victim_period(policy, verdict);
  for (const Victim& victim : verdict.after.victims) {
    switch (victim.phase) {
      case Victim::Phase::kTerminating:
        // Looked at now and then so that an early exit is noticed before its grace is over.
        soonest = std::min({soonest, victim.deadline - at, Duration(kRetryPeriod)});
        break;
      case Victim::Phase::kPreStop:
      case Victim::Phase::kRemoving:
        soonest = std::min({soonest, victim.sigterm_due - at, Duration(kRetryPeriod)});
        if (is_memory(victim.reason.signal)) soonest = std::min(soonest, period);
        break;
      case Victim::Phase::kKilled:
        soonest = std::min(soonest, period);
        break;
      case Victim::Phase::kTimedOut:
      case Victim::Phase::kDryRun:
        break;
    }
  }
  return soonest;
}

}  // namespace

void forecast(const Policy& policy, const Snapshot& snapshot, const History& before,
              Verdict& verdict) {
  for (std::size_t i = 0; i < kSignals; ++i) {
    const auto& seen = snapshot.observations[i];
    verdict.after.trends[i] = seen ? update_trend(before.trends[i], *seen) : before.trends[i];
  }
  for (ThresholdReading& reading : verdict.thresholds) {
    const auto signal = static_cast<std::size_t>(policy.thresholds[reading.index].signal);
    // What was lost in the last moment is no stock that runs out.
    if (is_share_of_time(policy.thresholds[reading.index].signal)) continue;
    reading.time_to = time_to(reading, verdict.after.trends[signal]);
  }
}

std::optional<Bytes> memory_left(const Policy& policy, const Verdict& verdict) {
  std::optional<Bytes> least;
  for (const ThresholdReading& reading : verdict.thresholds) {
    const Signal signal = policy.thresholds[reading.index].signal;
    if (!is_memory(signal)) continue;
    if (!reading.available || !reading.limit || *reading.available <= *reading.limit) continue;
    Bytes left{*reading.available - *reading.limit};
    // Past this the kernel swaps, and the working set no longer shows what is taken.
    if (signal == Signal::kMemoryAvailable && verdict.swap_room && verdict.swap_room->in_force)
      left = std::min(left, Bytes{verdict.swap_room->memory / 2});
    least = least ? std::min(*least, left) : left;
  }
  return least;
}

std::optional<Instant> next_pod_stalls(const Policy& policy, const Snapshot& snapshot,
                                       const Verdict& verdict) {
  std::optional<Instant> next;
  for (const ThresholdReading& reading : verdict.thresholds) {
    if (!reading.limit || policy.thresholds[reading.index].signal != Signal::kMemoryAvailable)
      continue;
    const auto due = pod_stalls_due(snapshot.swap, verdict.swap_room, *reading.limit);
    if (due) next = next ? std::min(*next, *due) : due;
  }
  return next;
}

void plan_next_check(const Policy& policy, const Snapshot& snapshot, Verdict& verdict) {
  // An act just decided is looked after at once, and so is what came of one.
  const bool eventful = !verdict.decisions.empty() || !verdict.eviction_ends.empty();
  Duration wait = eventful ? kShortestVictimPeriod : policy.check_ceiling;
  Duration guarded_wait = policy.check_ceiling;  // what a guard spares us
  for (const ThresholdReading& reading : verdict.thresholds) {
    const Duration own = time_until_check(policy, reading, verdict, snapshot.at);
    Duration& of_it = is_guarded(policy, reading, verdict) ? guarded_wait : wait;
    of_it = std::min(of_it, own);
  }
  if (const auto step = time_to_ladder_step(policy, snapshot, verdict))
    wait = std::min(wait, *step);
  if (is_reclaim_running(verdict.after)) wait = std::min<Duration>(wait, kRetryPeriod);
  wait = std::min(wait, time_until_victim_step(policy, verdict, snapshot.at));
  if (const auto timer = next_taint_timer(verdict.after, snapshot.at))
    wait = std::min(wait, *timer - snapshot.at);
  if (const auto due = next_pod_stalls(policy, snapshot, verdict))
    wait = std::min(wait, *due - snapshot.at);
  const auto bounded = [&](Duration after) {
    return snapshot.at + std::clamp(after, policy.check_floor, policy.check_ceiling);
  };
  verdict.next_check_guarded = bounded(wait);
  verdict.next_check = bounded(std::min(wait, guarded_wait));
}

}  // namespace headroom::judge_eviction
