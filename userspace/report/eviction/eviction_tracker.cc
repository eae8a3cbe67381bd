// SPDX-License-Identifier: Apache-2.0
#include "report/eviction/eviction_tracker.h"

#include "base/log/journal.h"
#include "report/eviction/eviction_message.h"
#include "report/eviction/messages.h"

#include <cerrno>
#include <string>

namespace headroom::report {
namespace {

log::Level level_of(Outcome::Result result) {
  switch (result) {
    case Outcome::Result::kDone:
      return log::Level::warn;
    case Outcome::Result::kFailed:
      return log::Level::err;
    case Outcome::Result::kGone:
    case Outcome::Result::kDryRun:
    case Outcome::Result::kStarted:
      return log::Level::info;
  }
  return log::Level::info;
}

void write(log::Level level, const std::string& line, const Pod& pod, CgroupId cgroup,
           const Reason& reason) {
  log::write(level, line,
             {{"MESSAGE_ID", log::kEvictionMessageId},
              {"HEADROOM_POD", pod_name(pod)},
              {"HEADROOM_POD_UID", pod.uid},
              {"HEADROOM_CGROUP", std::to_string(cgroup.value)},
              {"HEADROOM_SIGNAL", cause_name(reason)}});
}

void mark_signalled(Eviction& eviction, const Outcome& outcome) {
  if (outcome.decision.act == Act::kPreStop) return;  // commands are not a signal
  if (eviction.signalled_at == Instant{}) eviction.signalled_at = outcome.at;
  switch (outcome.decision.act) {
    case Act::kTerminate:
      eviction.terminated_at = outcome.at;
      return;
    case Act::kKill:
      eviction.killed_at = outcome.at;
      return;
    case Act::kPreStop:
    case Act::kRemove:
    case Act::kReclaim:
    case Act::kReclaimCache:
    case Act::kLowerMemoryHigh:
    case Act::kRaiseMemoryHigh:
    case Act::kRestoreMemoryHigh:
      return;
  }
}

// Disk usage is measured periodically; everything else is read in the sweep that is judged.
Duration age_of_usage(const PodReading& reading, Signal signal, Instant at) {
  const bool of_files = condition_of(signal) == Condition::kDiskPressure;
  return of_files && reading.disk ? at - reading.disk->at : Duration::zero();
}

void copy_ranking(const Turn& turn, Signal signal, std::vector<Ranked>& ranking) {
  for (const Candidate& candidate : turn.verdict.ranking) {
    if (candidate.pod >= turn.snapshot.pods.size()) continue;
    const PodReading& reading = turn.snapshot.pods[candidate.pod];
    ranking.push_back(Ranked{.pod = reading.pod,
                             .usage = candidate.usage,
                             .request = candidate.request,
                             .priority = candidate.priority,
                             .selection = candidate.selection,
                             .age = age_of_usage(reading, signal, turn.snapshot.at),
                             .predicted = candidate.predicted});
  }
}

void count_decision(const Decision& decision, Counters& counters) {
  const Reason& reason = decision.reason;
  if (reason.cause != Cause::kThreshold) return;  // no sample led to the decision
  counters.stats_age[cause_of(reason)].observe(decision.decided_at - reason.sampled_at);
  if (reason.limit != StorageLimit::kNone) return;  // a storage limit has no crossing
  counters.detect_to_decide.observe(decision.decided_at - reason.sampled_at);
  // A soft threshold waits for its grace period on purpose, so only hard ones are measured.
  if (reason.hard && reason.last_clear != Instant{})
    counters.crossing_to_decide.observe(decision.decided_at - reason.last_clear);
}

std::optional<KubeletPrediction> predictions(const Turn& turn, CgroupId cgroup) {
  if (!turn.shadow) return std::nullopt;
  for (const KubeletPrediction& would : turn.shadow->predictions)
    if (would.cgroup == cgroup) return would;
  return std::nullopt;
}

// For the end of an eviction that was decided before the daemon was restarted.
void fill_from_eviction_end(const EvictionEnd& eviction_end, Eviction& eviction) {
  eviction.decision.pod = eviction_end.pod;
  eviction.decision.cgroup = eviction_end.cgroup;
  eviction.decision.part = eviction_end.part;
  eviction.decision.reason = eviction_end.reason;
  eviction.signalled_at =
      eviction_end.terminated_at != Instant{} ? eviction_end.terminated_at : eviction_end.killed_at;
  eviction.decision.decided_at = eviction.signalled_at;
}

void count_eviction_end(const EvictionEnd& eviction_end, const Decision& decision,
                        Counters& counters) {
  ++(eviction_end.gone ? counters.victims_gone : counters.victims_timed_out);
  if (decision.rank_info.predicted && wants_memory(decision.reason.signal))
    counters.memory_predicted += static_cast<std::uint64_t>(*decision.rank_info.predicted);
  if (eviction_end.memory_returned && eviction_end.memory_returned->count > 0)
    counters.memory_returned += static_cast<std::uint64_t>(eviction_end.memory_returned->count);
  const Instant signal =
      eviction_end.killed_at != Instant{} ? eviction_end.killed_at : eviction_end.terminated_at;
  if (eviction_end.gone && signal != Instant{})
    counters.signal_to_exit.observe(eviction_end.ended_at - signal);
}

}  // namespace

bool EvictionTracker::update(const Turn& turn, Counters& counters) {
  for (const Outcome& outcome : turn.outcomes)
    handle_outcome(outcome, turn, counters);
  for (const EvictionEnd& eviction_end : turn.verdict.eviction_ends)
    record_end(eviction_end, counters);
  if (turn.snapshot.cgroups) table_.remove_reported(turn.snapshot.at, kRepeatRetention);
  return !turn.outcomes.empty() || !turn.verdict.eviction_ends.empty();
}

namespace {

using Result = Outcome::Result;

bool has_failed(const Outcome& outcome) {
  return outcome.result == Result::kFailed || outcome.error != 0;
}

void record_reclaim(const Outcome& outcome, Counters& counters) {
  const bool failed = has_failed(outcome);
  if (outcome.result == Result::kStarted)
    ++counters.reclaims_started;
  else if (failed)
    ++counters.reclaims_failed;
  else if (outcome.result == Result::kDone)
    ++counters.reclaims_done;
  log::write(failed ? log::Level::err : log::Level::info, reclaim_line(outcome),
             {{"HEADROOM_SIGNAL", name(outcome.decision.reason.signal)}});
}

LadderOutcome ladder_outcome_of(const Outcome& outcome) {
  if (outcome.result == Result::kStarted) return LadderOutcome::kStarted;
  if (outcome.result == Result::kDryRun) return LadderOutcome::kDryRun;
  return has_failed(outcome) ? LadderOutcome::kFailed : LadderOutcome::kDone;
}

// Reclaiming less page cache than requested is normal.
bool is_worth_warning(const Outcome& outcome) {
  return has_failed(outcome) &&
         !(outcome.decision.act == Act::kReclaimCache && outcome.error == EAGAIN);
}

void ladder(const Outcome& outcome, Counters& counters) {
  const Decision& decision = outcome.decision;
  const LadderOutcome end = ladder_outcome_of(outcome);
  if (outcome.result == Result::kGone) return;  // reported with the eviction
  ++counters.ladder[ladder_step(decision.act)][static_cast<std::size_t>(end)];
  if (decision.act == Act::kReclaimCache && end == LadderOutcome::kStarted)
    counters.ladder_reclaim_requested += static_cast<std::uint64_t>(decision.bytes->count);
  // Reclaim comes in many small steps: they are counted, and logged at level debug.
  const bool is_frequent = decision.act == Act::kReclaimCache && end != LadderOutcome::kDryRun;
  const auto level = is_worth_warning(outcome)                    ? log::Level::warn
                     : is_frequent || end == LadderOutcome::kDone ? log::Level::debug
                                                                  : log::Level::info;
  log::write(level, ladder_line(outcome),
             {{"HEADROOM_POD", pod_name(*decision.pod)},
              {"HEADROOM_POD_UID", decision.pod->uid},
              {"HEADROOM_CGROUP", std::to_string(decision.cgroup.value)},
              {"HEADROOM_LADDER", kLadderStepNames[ladder_step(decision.act)]}});
}

// Whether this is the result of a removal, or of pre-stop commands that ended. These do not change
// how the eviction ends.
bool is_async_action(const Outcome& outcome) {
  const Act act = outcome.decision.act;
  return act == Act::kRemove ||
         (act == Act::kPreStop && outcome.result != Result::kStarted &&
          outcome.result != Result::kDryRun && outcome.result != Result::kGone);
}

void record_async_action(const Outcome& outcome, Counters& counters) {
  const bool failed = has_failed(outcome);
  if (failed)
    ++(outcome.decision.act == Act::kPreStop ? counters.pre_stops_failed
                                             : counters.removals_failed);
  write(failed ? log::Level::err : log::Level::info, async_action_line(outcome),
        *outcome.decision.pod, outcome.decision.cgroup, outcome.decision.reason);
}

}  // namespace

void EvictionTracker::handle_outcome(const Outcome& outcome, const Turn& turn, Counters& counters) {
  if (outcome.decision.act == Act::kReclaim) return record_reclaim(outcome, counters);
  if (is_ladder(outcome.decision.act)) {
    if (outcome.result == Result::kStarted)
      recent_ladder_steps_.record(outcome.decision.act, outcome.at);
    return ladder(outcome, counters);
  }
  // If only one process was to be killed and it has exited, its EvictionEnd reports that.
  if (outcome.result == Result::kGone && under_way(outcome.decision)) return;
  if (is_async_action(outcome)) {
    record_async_action(outcome, counters);
    const bool starts_eviction =
        outcome.decision.act == Act::kPreStop && outcome.result == Result::kFailed;
    if (starts_eviction && !table_.find(outcome.decision.cgroup, outcome.decision.part))
      start_record(outcome, turn, counters);
    return;
  }
  switch (outcome.result) {
    case Outcome::Result::kDone:
    case Outcome::Result::kStarted:
      return record_done(outcome, turn, counters);
    case Outcome::Result::kGone:
      return record_not_done(outcome, Ending::kAlreadyGone, turn, counters);
    case Outcome::Result::kFailed:
      return record_not_done(outcome, Ending::kFailed, turn, counters);
    case Outcome::Result::kDryRun:
      return record_not_done(outcome, Ending::kWouldEvict, turn, counters);
  }
}

bool EvictionTracker::under_way(const Decision& decision) {
  const TrackedEviction* tracked_eviction = table_.find(decision.cgroup, decision.part);
  return decision.part.unit == EvictionUnit::kProcess && tracked_eviction &&
         tracked_eviction->reported == Ending::kOpen;
}

void EvictionTracker::record_done(const Outcome& outcome, const Turn& turn, Counters& counters) {
  counters.decide_to_signal.observe(outcome.at - outcome.decision.decided_at);
  log_outcome(outcome);
  TrackedEviction* tracked_eviction = table_.find(outcome.decision.cgroup, outcome.decision.part);
  if (tracked_eviction &&
      tracked_eviction->reported == Ending::kOpen) {  // the second act: SIGKILL after SIGTERM
    mark_signalled(tracked_eviction->eviction, outcome);
    return;
  }
  TrackedEviction& tracked = start_record(outcome, turn, counters);
  mark_signalled(tracked.eviction, outcome);
  // A pod that loses only a part keeps running, so it is not announced as evicted.
  if (setup_.on_evicted && outcome.decision.part.whole()) setup_.on_evicted(tracked.eviction);
}

void EvictionTracker::record_not_done(const Outcome& outcome, Ending ending, const Turn& turn,
                                      Counters& counters) {
  TrackedEviction* tracked_eviction = table_.find(outcome.decision.cgroup, outcome.decision.part);
  if (tracked_eviction) tracked_eviction->last_seen = outcome.at;
  const bool reported = tracked_eviction && tracked_eviction->reported == ending &&
                        tracked_eviction->reported_error == outcome.error;
  const bool under_way = tracked_eviction && tracked_eviction->reported == Ending::kOpen;
  // A failed attempt counts each time; dry runs and kills that found no process count only when
  // reported.
  if (reported || under_way) {
    if (ending == Ending::kFailed) ++counters.eviction_counter(outcome.decision, outcome.result);
    if (under_way && ending == Ending::kFailed && tracked_eviction->reported_error != outcome.error)
      log_outcome(outcome);
    if (under_way) tracked_eviction->reported_error = outcome.error;
    return;
  }
  log_outcome(outcome);
  TrackedEviction& tracked = start_record(outcome, turn, counters);
  tracked.eviction.error = outcome.error;
  tracked.reported_error = outcome.error;
  submit_record(tracked, ending, outcome.at);
}

void EvictionTracker::record_end(const EvictionEnd& eviction_end, Counters& counters) {
  TrackedEviction* tracked_eviction = table_.find(eviction_end.cgroup, eviction_end.part);
  if (!tracked_eviction || tracked_eviction->reported != Ending::kOpen) {
    if (tracked_eviction) table_.close(*tracked_eviction);
    tracked_eviction = &table_.open(eviction_end.cgroup, eviction_end.part, eviction_end.ended_at);
    fill_from_eviction_end(eviction_end, tracked_eviction->eviction);
  }
  Eviction& eviction = tracked_eviction->eviction;
  eviction.terminated_at = eviction_end.terminated_at;
  eviction.killed_at = eviction_end.killed_at;
  eviction.ended_at = eviction_end.ended_at;
  eviction.memory_returned = eviction_end.memory_returned;
  eviction.ending = eviction_end.gone ? Ending::kEvicted : Ending::kTimedOut;
  count_eviction_end(eviction_end, eviction.decision, counters);
  write(eviction_end.gone ? log::Level::info : log::Level::err, ending_line(eviction),
        *eviction_end.pod, eviction_end.cgroup, eviction_end.reason);
  submit_record(*tracked_eviction, eviction.ending, eviction_end.ended_at);
  table_.close(*tracked_eviction);
}

TrackedEviction& EvictionTracker::start_record(const Outcome& outcome, const Turn& turn,
                                               Counters& counters) {
  const Decision& decision = outcome.decision;
  // An act that was started counts as done.
  const auto result =
      outcome.result == Outcome::Result::kStarted ? Outcome::Result::kDone : outcome.result;
  ++counters.eviction_counter(decision, result);
  count_decision(decision, counters);
  TrackedEviction* tracked_eviction = table_.find(decision.cgroup, decision.part);
  if (tracked_eviction) table_.close(*tracked_eviction);
  TrackedEviction& tracked = table_.open(decision.cgroup, decision.part, outcome.at);
  Eviction& eviction = tracked.eviction;
  eviction.decision = decision;
  eviction.allocations = turn.kill_path_allocations;
  if (setup_.names)
    eviction.path =
        setup_.names->path_of(decision.part.whole() ? decision.cgroup : decision.part.cgroup);
  if (is_node_memory(decision.reason.signal)) eviction.swap_room = turn.verdict.swap_room;
  eviction.ladder = recent_ladder_steps_.before(decision.decided_at);
  eviction.message = eviction_message(decision, turn.policy, turn.snapshot, setup_.names);
  copy_ranking(turn, decision.reason.signal, eviction.ranking);
  eviction.kubelet = predictions(turn, decision.cgroup);
  if (setup_.flight_recording)
    eviction.flight_recording =
        setup_.flight_recording->capture(turn.policy, turn.verdict, turn.snapshot.at);
  return tracked;
}

// The emptied record stays in the table, so that a repeated decision is recognized.
void EvictionTracker::submit_record(TrackedEviction& tracked, Ending ending, Instant at) {
  tracked.eviction.ending = ending;
  tracked.reported = ending;
  tracked.last_seen = at;
  if (setup_.on_ended) setup_.on_ended(tracked.eviction);
  // Last: it takes the record.
  if (setup_.audit && !setup_.audit->submit(tracked.eviction))
    log::error("an eviction's audit record is lost: {} others wait for the disk",
               AuditLog::kQueueSize);
  reset(tracked.eviction);
}

void EvictionTracker::log_outcome(const Outcome& outcome) const {
  const Decision& decision = outcome.decision;
  write(level_of(outcome.result), outcome_line(outcome, qos_name(*decision.pod, setup_.qos_of)),
        *decision.pod, decision.cgroup, decision.reason);
}

}  // namespace headroom::report
