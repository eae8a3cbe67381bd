// SPDX-License-Identifier: Apache-2.0
// What an outcome teaches the next round, and what outlives a change of policy.
#include <headroom/judge.h>

#include <algorithm>

namespace headroom {
namespace {

using Phase = Victim::Phase;

std::vector<Victim>::iterator find(History& history, CgroupId cgroup) {
  return std::find_if(history.victims.begin(), history.victims.end(),
                      [&](const Victim& victim) { return victim.cgroup == cgroup; });
}

Victim victim_of(const Decision& decision) {
  Victim victim;
  victim.pod = decision.pod;
  victim.cgroup = decision.cgroup;
  victim.reason = decision.reason;
  victim.held = decision.standing.working_set;
  victim.memory_request = decision.standing.memory_request;
  return victim;
}

void condemned(const Outcome& outcome, Victim& victim) {
  // Counted from when the signal was out, not from when it was decided: grace is given in full.
  victim.deadline = outcome.decision.deadline + (outcome.at - outcome.decision.decided_at);
  if (outcome.decision.act == Act::kTerminate) {
    victim.phase = Phase::kTerminating;
    victim.terminated_at = outcome.at;
  } else {
    victim.phase = Phase::kKilled;
    victim.killed_at = outcome.at;
  }
}

bool same(const Threshold& a, const Threshold& b) {
  return a.signal == b.signal && a.value == b.value && a.grace == b.grace;
}

}  // namespace

void learn(const Outcome& outcome, History& history) {
  auto known = find(history, outcome.decision.cgroup);
  switch (outcome.result) {
    case Outcome::Result::kFailed:
      return;  // not done: the next round judges afresh
    case Outcome::Result::kGone:
      // Somebody already attended to stays until a farewell says so; a fresh choice is dropped.
      return;
    case Outcome::Result::kDone:
      if (known == history.victims.end())
        known = history.victims.insert(known, victim_of(outcome.decision));
      condemned(outcome, *known);
      return;
    case Outcome::Result::kPretended:
      if (known == history.victims.end())
        known = history.victims.insert(known, victim_of(outcome.decision));
      known->phase = Phase::kPretended;
      known->reason = outcome.decision.reason;
      return;
  }
}

History carry_over(const Policy& from, const History& history, const Policy& to) {
  History next = history;
  next.thresholds.assign(to.thresholds.size(), {});
  for (std::size_t i = 0; i < to.thresholds.size(); ++i)
    for (std::size_t j = 0; j < from.thresholds.size() && j < history.thresholds.size(); ++j)
      if (same(to.thresholds[i], from.thresholds[j])) next.thresholds[i] = history.thresholds[j];
  return next;
}

}  // namespace headroom
