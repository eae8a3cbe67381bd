// SPDX-License-Identifier: Apache-2.0
#include "judge/eviction/victims.h"

#include "judge/eviction/no_execute.h"
#include "judge/eviction/node_reclaim.h"
#include "judge/eviction/predicted_release.h"
#include "judge/eviction/rank/rank.h"
#include "judge/eviction/stuck_pods.h"
#include "judge/eviction/unit_selection.h"

#include <algorithm>
#include <array>

namespace headroom::judge_eviction {
namespace {

using Phase = Victim::Phase;

const PodReading* pod_reading(const Snapshot& snapshot, CgroupId cgroup) {
  const auto it = std::find_if(snapshot.pods.begin(), snapshot.pods.end(),
                               [&](const PodReading& pod) { return pod.cgroup == cgroup; });
  return it == snapshot.pods.end() ? nullptr : &*it;
}

// Gone: the cgroup was removed, or is empty. A missing record proves nothing.
bool gone(const Victim& victim, const PodReading* reading) {
  if (!reading) return true;
  if (reading->record && reading->record->populated == 0) return true;
  return !victim.part.whole() && is_part_gone(victim, reading);
}

// What came back: what it held, less what its cgroup still holds (page cache, shared memory).
std::optional<Bytes> memory_returned_by(const Victim& victim, const PodReading* reading) {
  if (!victim.held) return std::nullopt;
  if (!reading) return victim.held;
  if (victim.part.unit == EvictionUnit::kContainer) {
    const PartReading* part = reading_of(*reading, victim.part.cgroup);
    if (!part) return victim.held;
    if (!part->working_set) return std::nullopt;
    return std::max(*victim.held - *part->working_set, Bytes{0});
  }
  if (!reading->record) return std::nullopt;
  const auto left = working_set(*reading->record);
  if (!left) return std::nullopt;
  return std::max(*victim.held - *left, Bytes{0});
}

EvictionEnd eviction_end(const Victim& victim, const PodReading* reading, Instant at) {
  return EvictionEnd{.pod = victim.pod,
                     .cgroup = victim.cgroup,
                     .reason = victim.reason,
                     .terminated_at = victim.terminated_at,
                     .killed_at = victim.killed_at,
                     .ended_at = victim.gone_at == Instant{} ? at : victim.gone_at,
                     .gone = gone(victim, reading),
                     .memory_returned = memory_returned_by(victim, reading),
                     .part = victim.part};
}

Decision make_decision(Act act, const Victim& victim, const Reason& reason, Instant at,
                       Instant deadline) {
  RankInfo rank_info;
  rank_info.working_set = victim.held;
  rank_info.memory_request = victim.memory_request;
  return Decision{.act = act,
                  .pod = victim.pod,
                  .cgroup = victim.cgroup,
                  .reason = reason,
                  .rank_info = rank_info,
                  .steps = {},
                  .part = victim.part,
                  .bytes = {},
                  .decided_at = at,
                  .deadline = deadline};
}

Decision make_kill(const Victim& victim, const Reason& reason, Instant at) {
  return make_decision(Act::kKill, victim, reason, at,
                       at + return_window(reason.signal, victim.held));
}

bool is_for_disk(const Reason& reason) {
  return is_disk(reason.signal);
}

// The kubelet removes an evicted pod's emptyDirs; else a disk would be no emptier for it.
bool has_volumes_to_remove(const Policy& policy, const Victim& victim) {
  constexpr auto kOnDisk = [](const Volume& volume) {
    return volume.kind == Volume::Kind::kEmptyDir && !volume.in_memory;
  };
  return policy.remove_empty_dirs && victim.part.whole() && is_for_disk(victim.reason) &&
         std::any_of(victim.pod->volumes.begin(), victim.pod->volumes.end(), kOnDisk);
}

// Whether what a pretended eviction was for is over.
bool recovered(const Policy& policy, const Snapshot& snapshot, const History& before,
               const Verdict& verdict, const Victim& victim) {
  const Reason& reason = victim.reason;
  if (reason.cause == Cause::kTaint)
    return !is_evicted_by_taint(policy, *victim.pod, victim.cgroup, before, snapshot.at);
  if (reason.cause == Cause::kStuck) return !is_stuck(policy, verdict.after, victim.cgroup);
  if (reason.limit != StorageLimit::kNone) return false;
  for (const ThresholdReading& rank_info : verdict.thresholds) {
    const Threshold& threshold = policy.thresholds[rank_info.index];
    if (threshold.signal == reason.signal && threshold.hard() == reason.hard &&
        rank_info.below_since)
      return false;
  }
  return true;
}

// In observe mode a taint or a limit that stays would evict a pod again and again: such a victim
// blocks no other.
bool is_dry_run_without_shortage(const Victim& victim) {
  return victim.phase == Phase::kDryRun && victim.reason.cause != Cause::kThreshold;
}

}  // namespace

Duration return_window(Signal signal, std::optional<Bytes> held) {
  using std::chrono::milliseconds;
  // 75 to 82 ms/GiB measured for 4 KiB pages on an idle CPU; ten times that for a busy one, and a
  // floor for the exit itself. An unknown size gets the longest.
  constexpr Duration kFloor = milliseconds(1000), kPerGiB = milliseconds(800),
                     kCeiling = std::chrono::seconds(30);
  if (!held || condition_of(signal) != Condition::kMemoryPressure) return kCeiling;
  const auto mib = held->count >> 20;
  return std::min(kFloor + kPerGiB * mib / 1024, kCeiling);
}

Duration sigterm_reserve(Duration grace) {
  return std::min<Duration>(std::chrono::seconds(2), grace / 2);
}

bool is_awaited(const Victim& victim, Signal signal) {
  if (victim.phase == Phase::kRemoving)
    return condition_of(victim.reason.signal) == condition_of(signal);
  return victim.phase != Phase::kTimedOut && !is_dry_run_without_shortage(victim);
}

bool gives_back(const Victim& victim) {
  return victim.phase == Phase::kKilled ||
         (victim.phase == Phase::kRemoving && is_sized(victim.reason.signal));
}

bool has_new_process_after_kill(const Victim& victim, const PodReading* reading) {
  // A new process that holds less is not worth another kill.
  constexpr Bytes kGrown = 16_MiB;
  const bool killed = victim.phase == Phase::kKilled || victim.phase == Phase::kTimedOut;
  if (!killed || !victim.left) return false;
  const auto now = current_held(victim, reading);
  return now && *now > *victim.left + kGrown;
}

bool is_excluded(const History& history, const PodReading& reading, Instant at) {
  return std::any_of(history.victims.begin(), history.victims.end(), [&](const Victim& victim) {
    if (victim.cgroup != reading.cgroup || !victim.part.whole()) return false;
    if (has_new_process_after_kill(victim, &reading)) return false;
    if (victim.phase == Phase::kTimedOut) return at < victim.sigterm_due;
    // Its tasks are being reaped; what lives in the cgroup now came later.
    return victim.phase != Phase::kRemoving || is_disk(victim.reason.signal);
  });
}

Instant eligible_again_at(const Victim& before, Instant killed_at) {
  constexpr Duration kFirstRetryDelay = std::chrono::minutes(1),
                     kMaxRetryDelay = std::chrono::minutes(5);
  if (before.killed_at == Instant{} || before.sigterm_due <= before.killed_at)
    return killed_at + kFirstRetryDelay;
  return killed_at +
         std::clamp(2 * (before.sigterm_due - before.killed_at), kFirstRetryDelay, kMaxRetryDelay);
}

bool has_pending_victim(const History& history, Signal signal) {
  return std::any_of(history.victims.begin(), history.victims.end(),
                     [&](const Victim& victim) { return is_awaited(victim, signal); });
}

namespace {

// One victim's round: the reading is this instant's, null where its cgroup is gone.
class VictimUpdate {
 public:
  VictimUpdate(const Policy& policy, const Snapshot& snapshot, const History& before,
               Verdict& verdict)
      : policy_(policy), snapshot_(snapshot), before_(before), at_(snapshot.at), verdict_(verdict) {
    for (std::size_t i = 0; i < kSignals; ++i) {
      const auto& now = snapshot.observations[i];
      const auto& last = before.trends[i].last;
      if (now && last && now->at > last->at)
        risen_[i] = std::max<std::int64_t>(now->available - last->available, 0);
    }
  }

  void advance_victims(const Victim& victim, const PodReading* reading) {
    switch (victim.phase) {
      case Phase::kDryRun:
        if (!gone(victim, reading) && !recovered(policy_, snapshot_, before_, verdict_, victim))
          keep_victim(victim);
        return;
      case Phase::kRemoving:
        if (is_sized(victim.reason.signal)) return await_return(victim, reading);
        if (at_ < victim.sigterm_due) return keep_victim(victim);
        return end_victim(victim, reading);
      case Phase::kTimedOut:
        if (!gone(victim, reading)) {
          keep_victim(victim);
          update_least_held(verdict_.after.victims.back(), reading, use_of_swap(victim));
          return;
        }
        // It is no longer waited for, but its volumes are removed all the same.
        if (has_volumes_to_remove(policy_, victim)) remove(victim);
        return;
      case Phase::kPreStop:
      case Phase::kTerminating:
      case Phase::kKilled:
        if (gone(victim, reading)) return handle_gone(victim, reading);
        return handle_living(victim, reading);
    }
  }

 private:
  SwapUse use_of_swap(const Victim& victim) const {
    return swap_use(policy_, snapshot_, victim.reason.signal);
  }

  void keep_victim(const Victim& victim) { verdict_.after.victims.push_back(victim); }

  void end_victim(const Victim& victim, const PodReading* reading) {
    verdict_.eviction_ends.push_back(eviction_end(victim, reading, at_));
    if (is_for_disk(victim.reason)) verdict_.after.disk_settles_at = at_ + kDiskSettle;
  }

  // No process is left, but its zombies count as tasks until they are reaped, and its memory comes
  // back when the last that uses it lets go: another process uses it while it copies it, or reads
  // /proc/PID/stat. Page tables come back when no CPU can use them any more. The return is waited
  // for as long as it goes on.
  void await_return(const Victim& victim, const PodReading* reading) {
    Victim waited = victim;
    if (waited.phase != Phase::kRemoving) {
      waited.phase = Phase::kRemoving;
      waited.gone_at = at_;
      waited.sigterm_due = at_ + kMaxReturnTime;
    }
    std::int64_t& risen = risen_[static_cast<std::size_t>(victim.reason.signal)];
    bool returned = update_returned(waited, reading, use_of_swap(victim), risen);
    if (!reading) returned |= follow_page_tables(waited, snapshot_);
    const Instant due = at_ + return_timeout(waited, reading);
    waited.sigterm_due =
        std::min(due, returned ? waited.gone_at + kMaxReturnTime : waited.sigterm_due);
    if (waited.due.value_or(0) <= 0 || at_ >= waited.sigterm_due)
      return end_victim(waited, reading);
    keep_victim(waited);
  }

  // Of memory whose cgroup is removed `due` is right only while it was followed, since the kill.
  static bool may_return_later(const Victim& victim, const PodReading* reading) {
    const Signal signal = victim.reason.signal;
    return is_sized(signal) && victim.part.whole() &&
           (reading || signal == Signal::kPidAvailable || victim.phase == Phase::kKilled);
  }

  // From the latest pass that saw something come back. Of memory whose cgroup is removed nothing
  // shows that it is still held: no longer than its release takes. Zombies that the cgroup still
  // counts are waited for as long as any return: init reaps them once it runs, and a machine that
  // has thousands may keep it from that for seconds. No other victim would change that.
  Duration return_timeout(const Victim& victim, const PodReading* reading) const {
    const bool is_pids = victim.reason.signal == Signal::kPidAvailable;
    if (is_pids && reading && reading->record && (reading->record->valid & HR_PIDS))
      return kMaxReturnTime;
    if (reading || is_pids) return kReturnTimeout;
    if (waits_for_page_tables(victim, snapshot_)) return kReturnTimeout;
    return std::min(predicted_time(Bytes{victim.due.value_or(0)}), kReturnTimeout);
  }

  void handle_gone(const Victim& victim, const PodReading* reading) {
    if (may_return_later(victim, reading)) return await_return(victim, reading);
    if (!has_volumes_to_remove(policy_, victim)) return end_victim(victim, reading);
    keep_victim(victim);
    verdict_.after.victims.back().gone_at = at_;
    remove(victim);
  }

  void remove(const Victim& victim) {
    verdict_.decisions.push_back(
        make_decision(Act::kRemove, victim, victim.reason, at_, at_ + kRemoveWindow));
  }

  void handle_living(const Victim& victim, const PodReading* reading) {
    keep_victim(victim);
    Victim& living = verdict_.after.victims.back();
    update_expected_release(living, reading, use_of_swap(victim));
    extend_deadline_while_exiting(living, reading, at_);
    const bool term_due = victim.phase == Phase::kPreStop && at_ >= victim.sigterm_due;
    if (term_due && at_ < victim.deadline) {
      verdict_.decisions.push_back(
          make_decision(Act::kTerminate, victim, victim.reason, at_, victim.deadline));
      return;
    }
    if (at_ < living.deadline) return;
    if (victim.phase != Phase::kKilled) {
      verdict_.decisions.push_back(make_kill(victim, victim.reason, at_));
      return;
    }
    verdict_.eviction_ends.push_back(eviction_end(victim, reading, at_));
    living.phase = Phase::kTimedOut;
    // The rest of the pod is not spared for a part that would not die.
    if (!living.part.whole()) verdict_.after.victims.pop_back();
  }

  // Removing files takes what it takes; after this the next may be chosen.
  static constexpr Duration kRemoveWindow = std::chrono::seconds(60);
  // And from the end of the last process.
  static constexpr Duration kReturnTimeout = std::chrono::seconds(1),
                            kMaxReturnTime = std::chrono::seconds(30);

  const Policy& policy_;
  const Snapshot& snapshot_;
  const History& before_;
  const Instant at_;
  Verdict& verdict_;
  // What each signal has risen by since the pass before, and is not yet set against a victim.
  std::array<std::int64_t, kSignals> risen_{};
};

}  // namespace

namespace {

// How long nothing was looked at, if that is longer than a loop takes that waits for a victim: the
// machine was suspended, or the loop hung. Else zero.
Duration unseen_time(const Snapshot& snapshot, const History& before) {
  constexpr Duration kLongest = std::chrono::milliseconds(1500);
  constexpr auto kMemory = static_cast<std::size_t>(Signal::kMemoryAvailable);
  const auto& now = snapshot.observations[kMemory];
  const auto& last = before.trends[kMemory].last;
  if (!now || !last || now->at - last->at < kLongest) return Duration::zero();
  return now->at - last->at;
}

// No victim could end in that time, or give anything back.
Victim with_more_time(const Victim& victim, Duration unseen) {
  Victim next = victim;
  if (victim.phase == Phase::kKilled) next.deadline += unseen;
  if (victim.phase == Phase::kRemoving) next.sigterm_due += unseen;
  return next;
}

}  // namespace

void advance_victims(const Policy& policy, const Snapshot& snapshot, const History& before,
                     Verdict& verdict) {
  verdict.after.victims.clear();
  VictimUpdate pass(policy, snapshot, before, verdict);
  const Duration unseen = unseen_time(snapshot, before);
  for (const Victim& victim : before.victims)
    pass.advance_victims(with_more_time(victim, unseen), pod_reading(snapshot, victim.cgroup));
  expire_partial_evictions(snapshot, verdict.after);
}

namespace {

// In observe mode a pretended soft eviction stands for one that would still be in its grace.
bool waits_for_grace(const Victim& victim, Instant at) {
  if (is_dry_run_without_shortage(victim)) return false;
  if (victim.phase == Phase::kDryRun) return !victim.reason.hard;
  // Past its deadline attend() has decided it.
  return (victim.phase == Phase::kTerminating || victim.phase == Phase::kPreStop) &&
         at < victim.deadline;
}

bool frees_resource_of(const Victim& victim, Signal signal) {
  const Condition wanted = condition_of(signal);
  return wanted == Condition::kMemoryPressure || condition_of(victim.reason.signal) == wanted;
}

}  // namespace

std::size_t escalate_to_kill(const Snapshot& snapshot, const Reason& reason, Verdict& verdict) {
  std::size_t escalated = 0;
  for (const Victim& victim : verdict.after.victims) {
    if (!waits_for_grace(victim, snapshot.at) || !frees_resource_of(victim, reason.signal))
      continue;
    verdict.decisions.push_back(make_kill(victim, reason, snapshot.at));
    ++escalated;
  }
  return escalated;
}

}  // namespace headroom::judge_eviction
