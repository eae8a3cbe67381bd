// SPDX-License-Identifier: Apache-2.0
// judge(): the round, in the kubelet's order (eviction_manager.go, synchronize), on one instant.
#include "judge/eviction/ladder.h"
#include "judge/eviction/next_check.h"
#include "judge/eviction/no_execute.h"
#include "judge/eviction/node_reclaim.h"
#include "judge/eviction/predicted_release.h"
#include "judge/eviction/rank/rank.h"
#include "judge/eviction/selection.h"
#include "judge/eviction/storage_limits.h"
#include "judge/eviction/threshold/swap_aware.h"
#include "judge/eviction/threshold/threshold.h"
#include "judge/eviction/unit_selection.h"
#include "judge/eviction/victims.h"

#include <headroom/judge.h>

#include <algorithm>

namespace headroom {
namespace {

using namespace judge_eviction;

void clear(Verdict& verdict) {
  verdict.needs_cgroups = false;
  verdict.decisions.clear();
  verdict.eviction_ends.clear();
  verdict.ranking.clear();
}

// Whether a victim that is gone by this sweep was counted in a sample from before it: what it gave
// back shows in the next sample.
bool has_new_eviction_end(const Verdict& verdict, Signal signal) {
  for (const EvictionEnd& eviction_end : verdict.eviction_ends)
    if (eviction_end.gone && condition_of(eviction_end.reason.signal) == condition_of(signal))
      return true;
  return false;
}

// What must be freed for this threshold beyond what the dying will give back; absent: nothing, or
// not before one of them is gone.
std::optional<std::int64_t> bytes_to_free(const Policy& policy, const Snapshot& snapshot,
                                          std::uint32_t threshold, const Verdict& verdict) {
  const Signal signal = policy.thresholds[threshold].signal;
  if (!is_sized(signal)) {
    if (has_pending_victim(verdict.after, signal)) return std::nullopt;
    const bool is_measured = is_disk(signal) || signal == Signal::kCpuPressure;
    return is_measured ? shortfall(policy, snapshot, verdict, threshold).value_or(0) : 0;
  }
  if (has_new_eviction_end(verdict, signal)) return std::nullopt;
  const auto missing = shortfall(policy, snapshot, verdict, threshold);
  // A threshold that waits for a victim is checked at the victim's limit too; without victims, the
  // threshold itself is met.
  if (missing && *missing <= 0 && has_pending_victim(verdict.after, signal)) return std::nullopt;
  return missing;
}

// Act on one threshold, unless those already dying for it will give back enough.
void decide_for_threshold(const Policy& policy, const Snapshot& snapshot, std::uint32_t threshold,
                          Verdict& verdict) {
  const Reason reason = reason_for(policy, snapshot, verdict, threshold);
  const bool eviction_helps = holds_pods(reason.signal, snapshot.images);
  if (eviction_helps && reason.hard && escalate_to_kill(snapshot, reason, verdict) > 0) return;
  const auto missing = bytes_to_free(policy, snapshot, threshold, verdict);
  if (!missing) return;
  if (try_node_reclaim(policy, snapshot, reason, verdict) || !eviction_helps) return;
  if (needs_disk_measurement(snapshot, reason, verdict.after)) return;
  const std::size_t decided = verdict.decisions.size();
  choose(policy, snapshot, reason, *missing, verdict);
  if (verdict.decisions.size() == decided) return;
  reset_reclaim(reason.signal, verdict.after);
  if (reason.signal == Signal::kCpuPressure) verdict.after.cpu_evicted_at = snapshot.at;
}

// While a disk is short, the pods that fill it should be known at once.
bool is_disk_below_threshold(const Policy& policy, const Verdict& verdict) {
  for (const ThresholdReading& reading : verdict.thresholds)
    if (reading.below_since && is_disk(policy.thresholds[reading.index].signal)) return true;
  return false;
}

void judge_observations(const Policy& policy, const Snapshot& snapshot, const History& before,
                        Verdict& verdict) {
  clear(verdict);
  evaluate_thresholds(policy, snapshot, before, verdict);
  reset_recovered_reclaims(policy, verdict);
  verdict.measure_disks = is_disk_below_threshold(policy, verdict);
  forecast(policy, snapshot, before, verdict);
  if (!snapshot.cgroups) {
    verdict.needs_cgroups =
        threshold_to_act_on(policy, snapshot, before, verdict).has_value() ||
        !before.victims.empty() || taint_timer_due(before, snapshot.at) ||
        is_ladder_step_due(policy, snapshot, verdict) ||
        next_pod_stalls(policy, snapshot, verdict).value_or(Instant::max()) <= snapshot.at;
    // Kept if no sweep succeeds: no victim is forgotten, and it is tried again.
    verdict.after.victims = before.victims;
    verdict.after.taint_timers = before.taint_timers;
    verdict.after.taints_checked_at = before.taints_checked_at;
    plan_next_check(policy, snapshot, verdict);
    return;
  }
  advance_victims(policy, snapshot, before, verdict);
  apply_taints(policy, snapshot, before, verdict);
  const auto threshold = threshold_to_act_on(policy, snapshot, before, verdict);
  if (!enforce_storage_limits(policy, snapshot, verdict) && threshold)
    decide_for_threshold(policy, snapshot, *threshold, verdict);
  if (!verdict.decisions.empty() || !verdict.eviction_ends.empty())
    restart_pressure_grace(policy, verdict);
  run_ladder(policy, snapshot, threshold.has_value() || !verdict.decisions.empty(), verdict);
  plan_next_check(policy, snapshot, verdict);
}

using Phase = Victim::Phase;

std::vector<Victim>::iterator find(History& history, const Decision& decision) {
  return std::find_if(history.victims.begin(), history.victims.end(), [&](const Victim& victim) {
    return victim.cgroup == decision.cgroup && victim.part.is(decision.part);
  });
}

Victim victim_of(const Decision& decision) {
  Victim victim;
  victim.pod = decision.pod;
  victim.cgroup = decision.cgroup;
  victim.reason = decision.reason;
  victim.held = decision.rank_info.working_set;
  victim.due = victim.due_before = decision.rank_info.predicted;
  victim.memory_request = decision.rank_info.memory_request;
  victim.part = decision.part;
  return victim;
}

// It was killed before and was chosen again, for what lives in its cgroup now. What the former kill
// has yet to give back is waited for as before.
void restart_victim(const Decision& decision, Victim& victim) {
  Victim next = victim_of(decision);
  if (decision.act == Act::kKill) {  // the back-off goes on from these
    next.killed_at = victim.killed_at;
    next.sigterm_due = victim.sigterm_due;
  }
  const bool same_unit = resource_of(victim.reason.signal) == resource_of(decision.reason.signal);
  if (gives_back(victim) && same_unit && victim.due && next.due)
    next.due = next.due_before = *next.due + *victim.due;
  victim = std::move(next);
}

bool was_killed(const Victim& victim) {
  return victim.phase == Phase::kTimedOut || victim.phase == Phase::kRemoving ||
         (victim.phase == Phase::kKilled && victim.killed_at != Instant{});
}

void record_kill_outcome(const Outcome& outcome, Victim& victim) {
  const Decision& decision = outcome.decision;
  if (was_killed(victim)) restart_victim(decision, victim);
  // Counted from when the signal was out, not from when it was decided: grace is given in full.
  victim.deadline = decision.deadline + (outcome.at - decision.decided_at);
  if (decision.act == Act::kTerminate) {
    victim.phase = Phase::kTerminating;
    victim.terminated_at = outcome.at;
  } else {
    victim.phase = Phase::kKilled;
    victim.sigterm_due = judge_eviction::eligible_again_at(victim, outcome.at);
    victim.killed_at = outcome.at;
  }
}

// Nothing a pre-stop command does or fails to do keeps the pod: when it is over, SIGTERM is due.
void record_pre_stop_outcome(const Outcome& outcome, Victim& victim) {
  const Decision& decision = outcome.decision;
  if (outcome.result != Outcome::Result::kStarted && victim.phase == Phase::kPreStop) {
    victim.sigterm_due = std::min(victim.sigterm_due, outcome.at);
    return;
  }
  // escalated to a kill
  if (victim.killed_at != Instant{} || victim.terminated_at != Instant{}) return;
  victim.phase = Phase::kPreStop;
  victim.deadline = decision.deadline + (outcome.at - decision.decided_at);
  victim.sigterm_due = outcome.result == Outcome::Result::kStarted
                           ? victim.deadline - judge_eviction::sigterm_reserve(decision.deadline -
                                                                               decision.decided_at)
                           : outcome.at;
}

void record_removal_outcome(const Outcome& outcome, Victim& victim) {
  victim.phase = Phase::kRemoving;
  const bool begun = outcome.result == Outcome::Result::kStarted;
  victim.sigterm_due = begun ? outcome.decision.deadline : outcome.at;
}

void record_reclaim_end(const Outcome& outcome, History& history) {
  const Decision& decision = outcome.decision;
  Reclaim& reclaim = history.reclaims[static_cast<std::size_t>(decision.reason.signal)];
  if (outcome.result == Outcome::Result::kStarted) {
    reclaim = {.begun = outcome.at, .ended = {}, .deadline = decision.deadline};
    return;
  }
  if (reclaim.begun == Instant{})
    reclaim = {.begun = decision.decided_at, .ended = {}, .deadline = decision.deadline};
  reclaim.ended = outcome.at;
  history.disk_settles_at = outcome.at + judge_eviction::kDiskSettle;
}

// An end that is reported after the victim is gone is ignored.
void record_async_outcome(const Outcome& outcome, History& history,
                          std::vector<Victim>::iterator known) {
  const Act act = outcome.decision.act;
  if (act == Act::kPreStop) {
    const bool begins =
        outcome.result == Outcome::Result::kStarted || outcome.result == Outcome::Result::kFailed;
    if (known == history.victims.end() && !begins) return;
    if (known == history.victims.end())
      known = history.victims.insert(known, victim_of(outcome.decision));
    if (begins && was_killed(*known)) restart_victim(outcome.decision, *known);
    record_pre_stop_outcome(outcome, *known);
  }
  if (act == Act::kRemove && known != history.victims.end())
    record_removal_outcome(outcome, *known);
}

bool same_threshold(const Threshold& a, const Threshold& b) {
  return a.signal == b.signal && a.value == b.value && a.grace == b.grace;
}

}  // namespace

void judge(const Policy& policy, const Snapshot& snapshot, const History& before,
           Verdict& verdict) {
  const auto& memory = of(snapshot.observations, Signal::kMemoryAvailable);
  if (!snapshot.swap || !memory) {
    verdict.swap_room.reset();
    verdict.after.swap = before.swap;
    return judge_observations(policy, snapshot, before, verdict);
  }
  verdict.after.swap = advance(before.swap, *snapshot.swap);
  verdict.swap_room = swap_room(*snapshot.swap, memory->available, verdict.after.swap);
  verdict.swap_room->in_force = policy.swap_aware || !verdict.swap_room->swap;
  Snapshot with_swap = snapshot;
  if (verdict.swap_room->in_force)
    of(with_swap.observations, Signal::kMemoryAvailable)->available = verdict.swap_room->available;
  if (auto& kernel = of(with_swap.observations, Signal::kKernelMemAvailable))
    kernel->available = kernel_mem_available(*snapshot.swap, kernel->available, *verdict.swap_room,
                                             verdict.after.swap);
  judge_observations(policy, with_swap, before, verdict);
  if (!verdict.decisions.empty() || !verdict.eviction_ends.empty())
    restart_thrashing(verdict.after.swap);
}

void record_outcome(const Outcome& outcome, History& history) {
  const Act act = outcome.decision.act;
  if (act == Act::kReclaim) return record_reclaim_end(outcome, history);
  if (is_ladder(act)) return judge_eviction::record_ladder_outcome(outcome, history.ladder);
  auto known = find(history, outcome.decision);
  const bool dry_run = outcome.result == Outcome::Result::kDryRun;
  if (act == Act::kRemove || (act == Act::kPreStop && !dry_run))
    return record_async_outcome(outcome, history, known);
  switch (outcome.result) {
    case Outcome::Result::kFailed:
      return;  // not done: the next round judges afresh
    case Outcome::Result::kGone:
      // A pod that is already being evicted stays in the list until its EvictionEnd; a second
      // choice of it is dropped. That a single process has exited is reported only here.
      if (known != history.victims.end() && known->part.unit == EvictionUnit::kProcess)
        known->gone_at = outcome.at;
      return;
    case Outcome::Result::kDone:
      if (known == history.victims.end())
        known = history.victims.insert(known, victim_of(outcome.decision));
      record_kill_outcome(outcome, *known);
      if (act == Act::kKill && !known->part.whole())
        judge_eviction::record_partial_eviction(known->cgroup, outcome.at, history);
      return;
    case Outcome::Result::kStarted:
      return;  // of the acts above alone
    case Outcome::Result::kDryRun:
      if (known == history.victims.end())
        known = history.victims.insert(known, victim_of(outcome.decision));
      known->phase = Phase::kDryRun;
      known->reason = outcome.decision.reason;
      return;
  }
}

History carry_over(const Policy& from, const History& history, const Policy& to) {
  History next = history;
  next.thresholds.assign(to.thresholds.size(), {});
  for (std::size_t i = 0; i < to.thresholds.size(); ++i)
    for (std::size_t j = 0; j < from.thresholds.size() && j < history.thresholds.size(); ++j)
      if (same_threshold(to.thresholds[i], from.thresholds[j]))
        next.thresholds[i] = history.thresholds[j];
  return next;
}

}  // namespace headroom
