// SPDX-License-Identifier: Apache-2.0
#include "report/chronicle.h"

#include "report/eviction_message.h"
#include "report/journal.h"
#include "report/messages.h"

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
    case Outcome::Result::kPretended:
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
  if (outcome.decision.act == Act::kPreStop) return;  // commands are no signal
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
    case Act::kTakeCache:
    case Act::kSqueeze:
    case Act::kRelax:
    case Act::kRestore:
      return;
  }
}

// Files are measured now and then; all else is read on the pass that is judged.
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
                             .fate = candidate.fate,
                             .age = age_of_usage(reading, signal, turn.snapshot.at),
                             .predicted = candidate.predicted});
  }
}

void count_decision(const Decision& decision, Counters& counters) {
  const Reason& reason = decision.reason;
  if (reason.cause != Cause::kThreshold) return;  // no sample led to it
  counters.stats_age[cause_of(reason)].observe(decision.decided_at - reason.sampled_at);
  if (reason.limit != StorageLimit::kNone) return;  // nothing was crossed
  counters.detect_to_decide.observe(decision.decided_at - reason.sampled_at);
  // A soft threshold waits for its grace on purpose.
  if (reason.hard && reason.last_clear != Instant{})
    counters.crossing_to_decide.observe(decision.decided_at - reason.last_clear);
}

std::optional<KubeletWould> beside(const Turn& turn, CgroupId cgroup) {
  if (!turn.shadow) return std::nullopt;
  for (const KubeletWould& would : turn.shadow->beside)
    if (would.cgroup == cgroup) return would;
  return std::nullopt;
}

// A farewell to somebody whose decision was another daemon's, before a restart.
void adopt(const Farewell& farewell, Eviction& eviction) {
  eviction.decision.pod = farewell.pod;
  eviction.decision.cgroup = farewell.cgroup;
  eviction.decision.part = farewell.part;
  eviction.decision.reason = farewell.reason;
  eviction.signalled_at =
      farewell.terminated_at != Instant{} ? farewell.terminated_at : farewell.killed_at;
  eviction.decision.decided_at = eviction.signalled_at;
}

void count_farewell(const Farewell& farewell, const Decision& decision, Counters& counters) {
  ++(farewell.gone ? counters.victims_gone : counters.victims_outlasting);
  if (decision.standing.predicted && wants_memory(decision.reason.signal))
    counters.memory_predicted += static_cast<std::uint64_t>(*decision.standing.predicted);
  if (farewell.memory_returned && farewell.memory_returned->count > 0)
    counters.memory_returned += static_cast<std::uint64_t>(farewell.memory_returned->count);
  const Instant signal =
      farewell.killed_at != Instant{} ? farewell.killed_at : farewell.terminated_at;
  if (farewell.gone && signal != Instant{})
    counters.signal_to_exit.observe(farewell.ended_at - signal);
}

}  // namespace

bool Chronicle::follow(const Turn& turn, Counters& counters) {
  for (const Outcome& outcome : turn.outcomes)
    hear(outcome, turn, counters);
  for (const Farewell& farewell : turn.verdict.farewells)
    ended(farewell, counters);
  if (turn.snapshot.cgroups) table_.forget_told(turn.snapshot.at, kQuiet);
  return !turn.outcomes.empty() || !turn.verdict.farewells.empty();
}

namespace {

using Result = Outcome::Result;

bool went_wrong(const Outcome& outcome) {
  return outcome.result == Result::kFailed || outcome.error != 0;
}

void reclaim(const Outcome& outcome, Counters& counters) {
  const bool wrong = went_wrong(outcome);
  if (outcome.result == Result::kStarted)
    ++counters.reclaims_begun;
  else if (wrong)
    ++counters.reclaims_failed;
  else if (outcome.result == Result::kDone)
    ++counters.reclaims_done;
  log::write(wrong ? log::Level::err : log::Level::info, reclaim_line(outcome),
             {{"HEADROOM_SIGNAL", name(outcome.decision.reason.signal)}});
}

LadderEnd end_of(const Outcome& outcome) {
  if (outcome.result == Result::kStarted) return LadderEnd::kBegun;
  if (outcome.result == Result::kPretended) return LadderEnd::kPretended;
  return went_wrong(outcome) ? LadderEnd::kFailed : LadderEnd::kDone;
}

// Cache that is not there in full is nobody's fault.
bool worth_a_warning(const Outcome& outcome) {
  return went_wrong(outcome) &&
         !(outcome.decision.act == Act::kTakeCache && outcome.error == EAGAIN);
}

void ladder(const Outcome& outcome, Counters& counters) {
  const Decision& decision = outcome.decision;
  const LadderEnd end = end_of(outcome);
  if (outcome.result == Result::kGone) return;  // with what was done to it
  ++counters.ladder[ladder_step(decision.act)][static_cast<std::size_t>(end)];
  if (decision.act == Act::kTakeCache && end == LadderEnd::kBegun)
    counters.ladder_asked += static_cast<std::uint64_t>(decision.bytes->count);
  // Many takings make one story: they are counted, and seen at debug.
  const bool many = decision.act == Act::kTakeCache && end != LadderEnd::kPretended;
  const auto level = worth_a_warning(outcome)          ? log::Level::warn
                     : many || end == LadderEnd::kDone ? log::Level::debug
                                                       : log::Level::info;
  log::write(level, ladder_line(outcome),
             {{"HEADROOM_POD", pod_name(*decision.pod)},
              {"HEADROOM_POD_UID", decision.pod->uid},
              {"HEADROOM_CGROUP", std::to_string(decision.cgroup.value)},
              {"HEADROOM_LADDER", kLadderStepNames[ladder_step(decision.act)]}});
}

// The end of pre-stop commands, and all of a removal: nothing that decides a pod's lot.
bool is_errand(const Outcome& outcome) {
  const Act act = outcome.decision.act;
  return act == Act::kRemove ||
         (act == Act::kPreStop && outcome.result != Result::kStarted &&
          outcome.result != Result::kPretended && outcome.result != Result::kGone);
}

void errand(const Outcome& outcome, Counters& counters) {
  const bool wrong = went_wrong(outcome);
  if (wrong)
    ++(outcome.decision.act == Act::kPreStop ? counters.pre_stops_failed
                                             : counters.removals_failed);
  write(wrong ? log::Level::err : log::Level::info, errand_line(outcome), *outcome.decision.pod,
        outcome.decision.cgroup, outcome.decision.reason);
}

}  // namespace

void Chronicle::hear(const Outcome& outcome, const Turn& turn, Counters& counters) {
  if (outcome.decision.act == Act::kReclaim) return reclaim(outcome, counters);
  if (is_ladder(outcome.decision.act)) {
    if (outcome.result == Result::kStarted) climbed_.note(outcome.decision.act, outcome.at);
    return ladder(outcome, counters);
  }
  // That a process has exited is the end of a kill, and its farewell tells of it.
  if (outcome.result == Result::kGone && under_way(outcome.decision)) return;
  if (is_errand(outcome)) {
    errand(outcome, counters);
    const bool begins = outcome.decision.act == Act::kPreStop && outcome.result == Result::kFailed;
    if (begins && !table_.find(outcome.decision.cgroup, outcome.decision.part))
      begin(outcome, turn, counters);
    return;
  }
  switch (outcome.result) {
    case Outcome::Result::kDone:
    case Outcome::Result::kStarted:
      return done(outcome, turn, counters);
    case Outcome::Result::kGone:
      return not_done(outcome, Ending::kVanished, turn, counters);
    case Outcome::Result::kFailed:
      return not_done(outcome, Ending::kFailed, turn, counters);
    case Outcome::Result::kPretended:
      return not_done(outcome, Ending::kWouldEvict, turn, counters);
  }
}

bool Chronicle::under_way(const Decision& decision) {
  const Unfolding* known = table_.find(decision.cgroup, decision.part);
  return decision.part.unit == EvictionUnit::kProcess && known && known->told == Ending::kOpen;
}

void Chronicle::done(const Outcome& outcome, const Turn& turn, Counters& counters) {
  counters.decide_to_signal.observe(outcome.at - outcome.decision.decided_at);
  say(outcome);
  Unfolding* known = table_.find(outcome.decision.cgroup, outcome.decision.part);
  if (known && known->told == Ending::kOpen) {  // the second act: SIGKILL after SIGTERM
    mark_signalled(known->eviction, outcome);
    return;
  }
  Unfolding& unfolding = begin(outcome, turn, counters);
  mark_signalled(unfolding.eviction, outcome);
  // A pod that loses a part stays where it is.
  if (setup_.on_evicted && outcome.decision.part.whole()) setup_.on_evicted(unfolding.eviction);
}

void Chronicle::not_done(const Outcome& outcome, Ending ending, const Turn& turn,
                         Counters& counters) {
  Unfolding* known = table_.find(outcome.decision.cgroup, outcome.decision.part);
  if (known) known->last_seen = outcome.at;
  const bool told = known && known->told == ending && known->told_error == outcome.error;
  const bool under_way = known && known->told == Ending::kOpen;
  // An attempt that fails counts each time; pretending, and finding nobody, only as they are told.
  if (told || under_way) {
    if (ending == Ending::kFailed) ++counters.evictions_for(outcome.decision, outcome.result);
    if (under_way && ending == Ending::kFailed && known->told_error != outcome.error) say(outcome);
    if (under_way) known->told_error = outcome.error;
    return;
  }
  say(outcome);
  Unfolding& unfolding = begin(outcome, turn, counters);
  unfolding.eviction.error = outcome.error;
  unfolding.told_error = outcome.error;
  tell(unfolding, ending, outcome.at);
}

void Chronicle::ended(const Farewell& farewell, Counters& counters) {
  Unfolding* known = table_.find(farewell.cgroup, farewell.part);
  if (!known || known->told != Ending::kOpen) {
    if (known) table_.close(*known);
    known = &table_.open(farewell.cgroup, farewell.part, farewell.ended_at);
    adopt(farewell, known->eviction);
  }
  Eviction& eviction = known->eviction;
  eviction.terminated_at = farewell.terminated_at;
  eviction.killed_at = farewell.killed_at;
  eviction.ended_at = farewell.ended_at;
  eviction.memory_returned = farewell.memory_returned;
  eviction.ending = farewell.gone ? Ending::kEvicted : Ending::kOutlasting;
  count_farewell(farewell, eviction.decision, counters);
  write(farewell.gone ? log::Level::info : log::Level::err, ending_line(eviction), *farewell.pod,
        farewell.cgroup, farewell.reason);
  tell(*known, eviction.ending, farewell.ended_at);
  table_.close(*known);
}

Unfolding& Chronicle::begin(const Outcome& outcome, const Turn& turn, Counters& counters) {
  const Decision& decision = outcome.decision;
  // A started one is done so far as the pod's lot goes.
  const auto result =
      outcome.result == Outcome::Result::kStarted ? Outcome::Result::kDone : outcome.result;
  ++counters.evictions_for(decision, result);
  count_decision(decision, counters);
  Unfolding* known = table_.find(decision.cgroup, decision.part);
  if (known) table_.close(*known);
  Unfolding& unfolding = table_.open(decision.cgroup, decision.part, outcome.at);
  Eviction& eviction = unfolding.eviction;
  eviction.decision = decision;
  eviction.allocations = turn.kill_path_allocations;
  if (setup_.names)
    eviction.path =
        setup_.names->path_of(decision.part.whole() ? decision.cgroup : decision.part.cgroup);
  eviction.ladder = climbed_.before(decision.decided_at);
  eviction.message = eviction_message(decision, turn.policy, turn.snapshot, setup_.names);
  copy_ranking(turn, decision.reason.signal, eviction.ranking);
  eviction.kubelet = beside(turn, decision.cgroup);
  if (setup_.minute)
    eviction.minute = setup_.minute->freeze(turn.policy, turn.verdict, turn.snapshot.at);
  return unfolding;
}

// The record keeps its place, emptied, so that the same again is known for what it is.
void Chronicle::tell(Unfolding& unfolding, Ending ending, Instant at) {
  unfolding.eviction.ending = ending;
  unfolding.told = ending;
  unfolding.last_seen = at;
  if (setup_.audit && !setup_.audit->submit(unfolding.eviction))
    log::error("an eviction's audit record is lost: {} others wait for the disk",
               AuditLog::kInFlight);
  reset(unfolding.eviction);
}

void Chronicle::say(const Outcome& outcome) const {
  const Decision& decision = outcome.decision;
  write(level_of(outcome.result), outcome_line(outcome, qos_name(*decision.pod, setup_.qos_of)),
        *decision.pod, decision.cgroup, decision.reason);
}

}  // namespace headroom::report
