// SPDX-License-Identifier: Apache-2.0
#include "report/transition_log.h"

#include "base/log/journal.h"
#include "report/eviction/messages.h"

namespace headroom::report {

bool TransitionLog::update(const Policy& policy, const Verdict& verdict, Instant at,
                           Counters& counters) {
  update_thresholds(policy, verdict, at);
  bool condition_changed = false;
  for (std::size_t i = 0; i < kConditions; ++i) {
    if (conditions_[i] == verdict.conditions[i]) continue;
    conditions_[i] = verdict.conditions[i];
    ++counters.transitions[i];
    condition_changed = true;
    log::write(conditions_[i] ? log::Level::warn : log::Level::info,
               condition_line(static_cast<Condition>(i), conditions_[i]));
  }
  return condition_changed;
}

void TransitionLog::update_thresholds(const Policy& policy, const Verdict& verdict, Instant at) {
  for (const ThresholdReading& reading : verdict.thresholds) {
    if (!reading.met || !reading.limit || !reading.available) continue;
    if (reading.index >= policy.thresholds.size()) continue;
    const Threshold& threshold = policy.thresholds[reading.index];
    auto& last_logged = last_logged_[static_cast<std::size_t>(threshold.signal)][threshold.hard()];
    // `last_logged` advances while the threshold stays met: one line per stay, however long.
    const bool is_new = !last_logged || at - *last_logged >= kThresholdLogPeriod;
    last_logged = at;
    if (!is_new) continue;
    log::write(
        log::Level::warn,
        threshold_line(threshold.signal, threshold.hard(), *reading.limit, *reading.available),
        {{"HEADROOM_SIGNAL", name(threshold.signal)}});
  }
}

}  // namespace headroom::report
