// SPDX-License-Identifier: Apache-2.0
#include "judge/eviction/victims.h"

#include "judge/admission/no_execute.h"

#include <algorithm>

namespace headroom::judge_eviction {
namespace {

using Phase = Victim::Phase;

const PodReading* reading_of(const Snapshot& snapshot, CgroupId cgroup) {
  const auto it = std::find_if(snapshot.pods.begin(), snapshot.pods.end(),
                               [&](const PodReading& pod) { return pod.cgroup == cgroup; });
  return it == snapshot.pods.end() ? nullptr : &*it;
}

// Gone: the cgroup is no more, or nobody lives in it. A missing record proves nothing.
bool gone(const PodReading* reading) {
  if (!reading) return true;
  return reading->record && reading->record->populated == 0;
}

// What came back: what it held, less what its cgroup still holds (page cache, shared memory).
std::optional<Bytes> returned(const Victim& victim, const PodReading* reading) {
  if (!victim.held) return std::nullopt;
  if (!reading) return victim.held;
  if (!reading->record) return std::nullopt;
  const auto left = working_set(*reading->record);
  if (!left) return std::nullopt;
  return std::max(*victim.held - *left, Bytes{0});
}

Farewell farewell(const Victim& victim, const PodReading* reading, Instant at) {
  return Farewell{.pod = victim.pod,
                  .cgroup = victim.cgroup,
                  .reason = victim.reason,
                  .terminated_at = victim.terminated_at,
                  .killed_at = victim.killed_at,
                  .ended_at = at,
                  .gone = gone(reading),
                  .memory_returned = returned(victim, reading)};
}

Decision kill(const Victim& victim, const Reason& reason, Instant at) {
  Standing standing;
  standing.working_set = victim.held;
  standing.memory_request = victim.memory_request;
  return Decision{.act = Act::kKill,
                  .pod = victim.pod,
                  .cgroup = victim.cgroup,
                  .reason = reason,
                  .standing = standing,
                  .decided_at = at,
                  .deadline = at + return_window(victim.held)};
}

// Whether what a pretended eviction was for is over.
bool recovered(const Policy& policy, const Snapshot& snapshot, const History& before,
               const Verdict& verdict, const Victim& victim) {
  const Reason& reason = victim.reason;
  if (reason.cause == Cause::kTaint)
    return !must_leave(policy, *victim.pod, victim.cgroup, before, snapshot.at);
  for (const ThresholdStanding& standing : verdict.thresholds) {
    const Threshold& threshold = policy.thresholds[standing.index];
    if (threshold.signal == reason.signal && threshold.hard() == reason.hard &&
        standing.below_since)
      return false;
  }
  return true;
}

// In observe mode a taint that stays would have somebody leave for ever: he holds up nobody.
bool stays_for_a_taint(const Victim& victim) {
  return victim.phase == Phase::kPretended && victim.reason.cause == Cause::kTaint;
}

}  // namespace

Duration return_window(std::optional<Bytes> held) {
  using std::chrono::milliseconds;
  // 75 to 82 ms/GiB measured for 4 KiB pages on an idle CPU; ten times that for a busy one, and a
  // floor for the exit itself. An unknown size gets the longest.
  constexpr Duration kFloor = milliseconds(1000), kPerGiB = milliseconds(800),
                     kCeiling = std::chrono::seconds(30);
  if (!held) return kCeiling;
  const auto mib = held->count >> 20;
  return std::min(kFloor + kPerGiB * mib / 1024, kCeiling);
}

bool awaiting(const History& history) {
  return std::any_of(history.victims.begin(), history.victims.end(), [](const Victim& victim) {
    return victim.phase != Phase::kSpent && !stays_for_a_taint(victim);
  });
}

void attend(const Policy& policy, const Snapshot& snapshot, const History& before,
            Verdict& verdict) {
  verdict.after.victims.clear();
  for (const Victim& victim : before.victims) {
    const PodReading* reading = reading_of(snapshot, victim.cgroup);
    if (victim.phase == Phase::kPretended) {
      if (!gone(reading) && !recovered(policy, snapshot, before, verdict, victim))
        verdict.after.victims.push_back(victim);
      continue;
    }
    if (gone(reading)) {
      if (victim.phase != Phase::kSpent)
        verdict.farewells.push_back(farewell(victim, reading, snapshot.at));
      continue;
    }
    verdict.after.victims.push_back(victim);
    if (victim.phase == Phase::kSpent || snapshot.at < victim.deadline) continue;
    if (victim.phase == Phase::kTerminating) {
      verdict.decisions.push_back(kill(victim, victim.reason, snapshot.at));
      continue;
    }
    verdict.farewells.push_back(farewell(victim, reading, snapshot.at));
    verdict.after.victims.back().phase = Phase::kSpent;
  }
}

namespace {

// In observe mode a pretended soft eviction stands for one that would still be in its grace.
bool waits_for_grace(const Victim& victim, Instant at) {
  if (stays_for_a_taint(victim)) return false;
  if (victim.phase == Phase::kPretended) return !victim.reason.hard;
  return victim.phase == Phase::kTerminating && at < victim.deadline;  // else attend() decided it
}

}  // namespace

std::size_t hasten(const Snapshot& snapshot, const Reason& reason, Verdict& verdict) {
  std::size_t hastened = 0;
  for (const Victim& victim : verdict.after.victims) {
    if (!waits_for_grace(victim, snapshot.at)) continue;
    verdict.decisions.push_back(kill(victim, reason, snapshot.at));
    ++hastened;
  }
  return hastened;
}

}  // namespace headroom::judge_eviction
