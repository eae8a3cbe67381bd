// SPDX-License-Identifier: Apache-2.0
#include "report/transitions.h"

#include "report/journal.h"
#include "report/messages.h"

namespace headroom::report {

bool Transitions::follow(const Policy& policy, const Verdict& verdict, Instant at,
                         Counters& counters) {
  follow_thresholds(policy, verdict, at);
  bool turned = false;
  for (std::size_t i = 0; i < kConditions; ++i) {
    if (conditions_[i] == verdict.conditions[i]) continue;
    conditions_[i] = verdict.conditions[i];
    ++counters.transitions[i];
    turned = true;
    log::write(conditions_[i] ? log::Level::warn : log::Level::info,
               condition_line(static_cast<Condition>(i), conditions_[i]));
  }
  return turned;
}

void Transitions::follow_thresholds(const Policy& policy, const Verdict& verdict, Instant at) {
  for (const ThresholdStanding& standing : verdict.thresholds) {
    if (!standing.met || !standing.limit || !standing.available) continue;
    if (standing.index >= policy.thresholds.size()) continue;
    const Threshold& threshold = policy.thresholds[standing.index];
    auto& told = told_[static_cast<std::size_t>(threshold.signal)][threshold.hard()];
    // `told` moves along while the threshold stays met: one line per stay, however long.
    const bool news = !told || at - *told >= kThresholdQuiet;
    told = at;
    if (!news) continue;
    log::write(
        log::Level::warn,
        threshold_line(threshold.signal, threshold.hard(), *standing.limit, *standing.available),
        {{"HEADROOM_SIGNAL", name(threshold.signal)}});
  }
}

}  // namespace headroom::report
