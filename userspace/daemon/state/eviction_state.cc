// SPDX-License-Identifier: Apache-2.0
#include "daemon/state/eviction_state.h"

#include "base/log/journal.h"

#include <utility>

namespace headroom::daemon {

void EvictionState::save(const History& history) {
  const auto victims = victims_file_.save(history.victims);
  const auto timers = taint_timers_file_.save(history.taint_timers);
  const bool failed = !victims || !timers;
  if (failed && !std::exchange(failure_logged_, true))
    log::error("{}: a restarted daemon would not resume evictions and taint timers in progress",
               victims ? timers.error().what : victims.error().what);
  failure_logged_ = failed;
}

std::vector<Victim> EvictionState::load_victims() {
  auto victims = victims_file_.load();
  if (!victims) {
    log::error("{}", victims.error().what);
    return {};
  }
  for (const Victim& victim : *victims)
    log::info("resuming the eviction of {}/{}", victim.pod->pod_namespace, victim.pod->name);
  return std::move(*victims);
}

std::vector<TaintTimer> EvictionState::load_taint_timers() {
  auto timers = taint_timers_file_.load();
  if (timers) return std::move(*timers);
  log::error("{}: the tolerationSeconds of all pods start again", timers.error().what);
  return {};
}

}  // namespace headroom::daemon
