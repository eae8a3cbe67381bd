// SPDX-License-Identifier: Apache-2.0
#include "recording/replayer.h"

#include "recording/shapes.h"
#include "recording/tape.h"

#include <headroom/snapshot.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace headroom::recording {
namespace {

// ReplayState: a recorded node as it would have been if other pods had been evicted. A model with
// these rules:
//
// - A pod that the replay kills is gone after 100 ms and 80 ms for each GiB it held; from then on
// what it holds in the recording is available memory. A pod that gets SIGTERM uses its whole grace.
// - A pod that the recording evicted and the replay spares stays as it was when it was evicted:
// what it held is no longer available.
// - If the replay kills a part of a pod, its predicted release is available after 100 ms; the pod
// is shown as the recording has it.
// - The ladder's steps are taken, and change nothing that is not recorded.
// - Only memory.available and allocatableMemory.available are corrected, by memory alone.
// - Every action succeeds, at once, unless the recording holds the same action on the same pod in
// the same turn: then with the recorded result.

class ReplayState {
 public:
  // The turn's snapshot, corrected. Good until the next call.
  Snapshot corrected(const Turn& turn);
  // The latest pass, corrected, at this instant: for a closer look than the recording took.
  Snapshot extra_sweeps(const Snapshot& snapshot) const;

  // What the recording and the replay did at this turn, once both are known.
  void record_decisions(const Turn& turn, const std::vector<Decision>& replayed);

 private:
  struct Killed {
    Instant gone_at;
  };
  struct PartialKill {
    CgroupId pod;
    std::int64_t bytes;
    Instant gone_at;
  };
  // A pod as it was when the recording evicted it.
  struct Spared {
    PodReading reading;
    hr_record record;
  };
  void save_pass(const Snapshot& snapshot);
  void correct(Signal signal, Snapshot& snapshot) const;
  const PodReading* recorded(CgroupId cgroup) const;
  bool gone(CgroupId cgroup, Instant at) const;

  std::vector<PodReading> pass_;  // the recording's latest
  std::vector<hr_record> records_;
  std::vector<DiskUsage> disks_;
  std::vector<PodReading> shown_;  // the same, corrected
  std::unordered_map<CgroupId, Killed> killed_;
  std::vector<PartialKill> partial_kills_;
  std::map<CgroupId, Spared> spared_;
};

constexpr Duration kExit = std::chrono::milliseconds(100);
constexpr Duration kExitPerGiB = std::chrono::milliseconds(80);

bool ends_pod(const Decision& decision) {
  return decision.act == Act::kKill || decision.act == Act::kTerminate;
}

std::int64_t held_by(const PodReading* reading) {
  if (!reading || !reading->record || reading->record->populated == 0) return 0;
  const auto held = working_set(*reading->record);
  return held ? held->count : 0;
}

const PodReading* ReplayState::recorded(CgroupId cgroup) const {
  const auto it = std::find_if(pass_.begin(), pass_.end(),
                               [&](const PodReading& each) { return each.cgroup == cgroup; });
  return it == pass_.end() ? nullptr : &*it;
}

bool ReplayState::gone(CgroupId cgroup, Instant at) const {
  const auto it = killed_.find(cgroup);
  return it != killed_.end() && at >= it->second.gone_at;
}

// Copied: the reader overwrites what its spans show.
void ReplayState::save_pass(const Snapshot& snapshot) {
  pass_.assign(snapshot.pods.begin(), snapshot.pods.end());
  records_.clear();
  disks_.clear();
  records_.reserve(pass_.size());
  disks_.reserve(pass_.size());
  for (PodReading& reading : pass_) {
    if (reading.record) reading.record = &records_.emplace_back(*reading.record);
    if (reading.disk) reading.disk = &disks_.emplace_back(*reading.disk);
  }
}

void ReplayState::correct(Signal signal, Snapshot& snapshot) const {
  auto& corrected = of(snapshot.observations, signal);
  if (!corrected) return;
  const std::int64_t recorded_value = corrected->available;
  for (const auto& [cgroup, killed] : killed_)
    if (snapshot.at >= killed.gone_at) corrected->available += held_by(recorded(cgroup));
  for (const PartialKill& part : partial_kills_)
    if (snapshot.at >= part.gone_at && !gone(part.pod, snapshot.at))
      corrected->available += std::min(part.bytes, held_by(recorded(part.pod)));
  for (const auto& [cgroup, spared] : spared_)
    if (!gone(cgroup, snapshot.at))
      corrected->available -= held_by(&spared.reading) - held_by(recorded(cgroup));
  if (snapshot.swap && signal == Signal::kMemoryAvailable)
    snapshot.swap->mem_available += corrected->available - recorded_value;
  corrected->available = std::clamp<std::int64_t>(corrected->available, 0, corrected->capacity);
}

Snapshot ReplayState::corrected(const Turn& turn) {
  Snapshot snapshot = turn.snapshot;
  if (snapshot.cgroups) save_pass(snapshot);
  shown_.clear();
  for (const PodReading& reading : pass_)
    if (!gone(reading.cgroup, snapshot.at) && !spared_.contains(reading.cgroup))
      shown_.push_back(reading);
  for (const auto& [cgroup, spared] : spared_)
    if (!gone(cgroup, snapshot.at)) shown_.push_back(spared.reading);
  if (snapshot.cgroups) snapshot.pods = shown_;
  correct(Signal::kMemoryAvailable, snapshot);
  correct(Signal::kAllocatableMemoryAvailable, snapshot);
  correct(Signal::kKernelMemAvailable, snapshot);
  return snapshot;
}

Snapshot ReplayState::extra_sweeps(const Snapshot& snapshot) const {
  Snapshot with_pods = snapshot;
  with_pods.cgroups.emplace();
  with_pods.pods = shown_;
  return with_pods;
}

void ReplayState::record_decisions(const Turn& turn, const std::vector<Decision>& replayed) {
  // Done by both at once, it goes as the recording shows.
  const auto in_both = [&](const Decision& decision) {
    return std::any_of(turn.decisions.begin(), turn.decisions.end(), [&](const Decision& each) {
      return each.cgroup == decision.cgroup && each.act == decision.act &&
             each.part.is(decision.part);
    });
  };
  for (const Decision& decision : replayed) {
    if (decision.act != Act::kKill || in_both(decision)) continue;
    const auto spared = spared_.find(decision.cgroup);
    const std::int64_t held =
        held_by(spared == spared_.end() ? recorded(decision.cgroup) : &spared->second.reading);
    const auto part = decision.rank_info.predicted.value_or(0);
    if (!decision.part.whole()) {
      partial_kills_.push_back({decision.cgroup, part, turn.snapshot.at + kExit});
      continue;
    }
    const Duration exit = kExit + kExitPerGiB * (held >> 20) / 1024;
    killed_.try_emplace(decision.cgroup, Killed{turn.snapshot.at + exit});
  }
  for (std::size_t i = 0; i < turn.decisions.size(); ++i) {
    const Decision& decision = turn.decisions[i];
    const bool done = turn.outcomes[i].result == Outcome::Result::kDone;
    const bool as_well = std::any_of(replayed.begin(), replayed.end(), [&](const Decision& each) {
      return each.cgroup == decision.cgroup;
    });
    const PodReading* reading = recorded(decision.cgroup);
    if (!done || !ends_pod(decision) || as_well || killed_.contains(decision.cgroup) || !reading ||
        !reading->record)
      continue;
    const auto [place, fresh] =
        spared_.try_emplace(decision.cgroup, Spared{*reading, *reading->record});
    if (fresh) place->second.reading.record = &place->second.record;
    place->second.reading.disk = nullptr;
  }
}

std::string bytes_of(const std::vector<Decision>& decisions,
                     const std::vector<EvictionEnd>& eviction_ends) {
  std::string bytes;
  InternTables intern_tables;
  Writer(bytes, intern_tables, {})(decisions, eviction_ends);
  return bytes;
}

bool same_act(const Decision& a, const Decision& b) {
  return a.act == b.act && a.cgroup == b.cgroup && a.part.is(b.part);
}

// --- what came of what the replay decided --------------------------------------------------------

// Where nothing is on record: it is done, at once; what takes time is begun.
Outcome assumed_outcome(const Decision& decision, Mode mode) {
  Outcome outcome{.decision = decision, .at = decision.decided_at};
  if (mode == Mode::kObserve)
    outcome.result = Outcome::Result::kDryRun;
  else if (decision.act == Act::kPreStop || decision.act == Act::kRemove)
    outcome.result = Outcome::Result::kStarted;
  return outcome;
}

Outcome outcome_of(const Decision& decision, const Turn& turn, Mode recorded, Mode mode) {
  if (recorded == mode)
    for (const Outcome& outcome : turn.outcomes)
      if (same_act(outcome.decision, decision)) {
        Outcome same = outcome;
        same.decision = decision;
        return same;
      }
  return assumed_outcome(decision, mode);
}

class Replayer {
 public:
  explicit Replayer(const PolicyOverride& other) : policy_override_(other) {}

  void play(const Baseline& baseline) {
    result_.lost += baseline.lost;
    if (!policy_override_ || !begun_) history_ = baseline.history;
    adopt(baseline.policy, policy_override_ && begun_);
    if (!begun_) result_.first = baseline.at;
    result_.last = baseline.at;
    begun_ = true;
  }
  void play(const Change& change) { adopt(change.policy, true); }
  void play(const SystemUse&) {}  // nothing was judged by it
  // The other policy is of evictions: it says nothing of limits.
  void play(const LimitPlans& made) {
    if (policy_override_) return;
    result_.limits.lost += made.lost;
    result_.limits.plans += made.plans.size();
    for (const PlannedLimit& planned : made.plans)
      if (!is_same_again(planned)) ++result_.limits.different;
  }
  void play(const End& end) {
    result_.lost += end.lost;
    result_.last = end.at;
  }
  void play(const Turn& turn) {
    ++result_.turns;
    result_.last = turn.snapshot.at;
    follow_images(turn.snapshot.images);
    learn_ends(turn);
    judge_turn(turn);
    compare(turn);
    for (const Decision& decision : verdict_.decisions)
      record_outcome(outcome_of(decision, turn, recorded_.mode, policy_.mode), verdict_.after);
    if (policy_override_) state_.record_decisions(turn, verdict_.decisions);
    std::swap(history_, verdict_.after);
  }

  Replayed take(bool cut_short) {
    result_.cut_short = cut_short;
    return std::move(result_);
  }

 private:
  // Another policy takes over what still applies of the history, as a reload does. The baseline's
  // own policy is the one its history belongs to.
  void adopt(const Policy& recorded, bool carry) {
    Policy next = policy_override_ ? policy_override_(recorded, images_) : recorded;
    if (carry || policy_override_)
      history_ = carry_over(carry ? policy_ : recorded, history_, next);
    recorded_ = recorded;
    policy_ = std::move(next);
  }

  // Thresholds of containerfs follow where containers' data lives.
  void follow_images(ImageStorage images) {
    if (!policy_override_ || images == images_) return;
    images_ = images;
    adopt(recorded_, true);
  }

  // The end of what the replay never began teaches nothing.
  void learn_ends(const Turn& turn) {
    for (const Outcome& outcome : turn.ended)
      if (!policy_override_ || began(outcome)) record_outcome(outcome, history_);
  }
  bool began(const Outcome& outcome) const {
    const Decision& decision = outcome.decision;
    if (is_ladder(decision.act)) return true;
    if (decision.act == Act::kReclaim)
      return history_.reclaims[static_cast<std::size_t>(decision.reason.signal)].begun != Instant{};
    return std::any_of(history_.victims.begin(), history_.victims.end(),
                       [&](const Victim& victim) { return victim.cgroup == decision.cgroup; });
  }

  void judge_turn(const Turn& turn) {
    if (!policy_override_) return judge(policy_, turn.snapshot, history_, verdict_);
    const Snapshot snapshot = state_.corrected(turn);
    judge(policy_, snapshot, history_, verdict_);
    if (!verdict_.needs_cgroups) return;
    ++result_.extra_sweeps;
    judge(policy_, state_.extra_sweeps(snapshot), history_, verdict_);
  }

  void compare(const Turn& turn) {
    const bool quiet = turn.decisions.empty() && verdict_.decisions.empty() &&
                       turn.eviction_ends.empty() && verdict_.eviction_ends.empty();
    if (quiet) return;
    ReplayedTurn answer{
        .at = turn.snapshot.at, .recorded = turn.decisions, .replayed = verdict_.decisions};
    answer.same_acts = std::equal(turn.decisions.begin(), turn.decisions.end(),
                                  verdict_.decisions.begin(), verdict_.decisions.end(), same_act);
    answer.identical = bytes_of(turn.decisions, turn.eviction_ends) ==
                       bytes_of(verdict_.decisions, verdict_.eviction_ends);
    result_.answers.push_back(std::move(answer));
  }

  const PolicyOverride& policy_override_;
  Policy recorded_, policy_;
  ImageStorage images_;
  History history_;
  Verdict verdict_;
  ReplayState state_;
  Replayed result_;
  bool begun_ = false;
};

}  // namespace

bool Replayed::same_acts() const {
  return limits.different == 0 &&
         std::all_of(answers.begin(), answers.end(),
                     [](const ReplayedTurn& answer) { return answer.same_acts; });
}
bool Replayed::identical() const {
  return limits.different == 0 &&
         std::all_of(answers.begin(), answers.end(),
                     [](const ReplayedTurn& answer) { return answer.identical; });
}

Result<Replayed> replay(TapeReader& tape, const PolicyOverride& other) {
  Replayer player(other);
  while (true) {
    const auto frame = tape.next();
    if (!frame) return tl::make_unexpected(frame.error());
    if (!*frame) return player.take(tape.cut_short());
    std::visit([&](const auto& each) { player.play(each); }, **frame);
  }
}

}  // namespace headroom::recording
