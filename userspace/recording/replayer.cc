// SPDX-License-Identifier: Apache-2.0
#include "recording/replayer.h"

#include "recording/replay_state.h"
#include "recording/shapes.h"

#include <algorithm>
#include <string>
#include <utility>

namespace headroom::recording {
namespace {

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
  return std::all_of(answers.begin(), answers.end(),
                     [](const ReplayedTurn& answer) { return answer.same_acts; });
}
bool Replayed::identical() const {
  return std::all_of(answers.begin(), answers.end(),
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
