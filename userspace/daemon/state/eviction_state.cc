// SPDX-License-Identifier: Apache-2.0
#include "daemon/state/eviction_state.h"

#include "base/log/journal.h"
#include "daemon/state/unversioned_state.h"

#include <algorithm>
#include <utility>

namespace headroom::daemon {
namespace {

bool same(const TaintTimer& a, const TaintTimer& b) {
  return a.cgroup == b.cgroup && a.started == b.started && a.length == b.length;
}

}  // namespace

TaintTimersFile::TaintTimersFile(const std::filesystem::path& state_dir)
    : file_(state_dir / "taint-timers.json", &decode_unversioned) {}

Result<> TaintTimersFile::save(const std::vector<TaintTimer>& timers) {
  if (std::equal(timers.begin(), timers.end(), saved_.begin(), saved_.end(), same)) return {};
  if (auto written = file_.save(timers); !written) return written;
  saved_ = timers;
  return {};
}

Result<std::vector<TaintTimer>> TaintTimersFile::load() {
  auto timers = file_.load();
  if (timers) saved_ = *timers;
  return timers;
}

namespace {

namespace fs = std::filesystem;

// The earlier daemon's threads ended with it. Pre-stop commands continue on their own, so their
// deadline is kept. A removal starts again. Readings of the earlier daemon's sweeps
// are dropped.
Victim after_restart(Victim victim) {
  if (victim.phase == Victim::Phase::kRemoving) victim.phase = Victim::Phase::kKilled;
  victim.gone_at = {};
  victim.due_before.reset();
  victim.due.reset();
  victim.left.reset();
  victim.ran = {};
  return victim;
}

// Victims of mode observe are not kept over a restart.
bool is_persistent(const Victim& victim) {
  return victim.phase != Victim::Phase::kDryRun;
}

// The judge and the reports read these without a check.
bool is_complete(const Victim& victim) {
  return victim.pod && (victim.reason.cause != Cause::kTaint || victim.reason.taint);
}

}  // namespace

VictimsFile::VictimsFile(const fs::path& state_dir)
    : file_(state_dir / "victims.json", &decode_unversioned) {}

bool VictimsFile::unchanged(const std::vector<Victim>& victims) const {
  std::size_t i = 0;
  for (const Victim& victim : victims) {
    if (!is_persistent(victim)) continue;
    if (i == saved_.size() || saved_[i] != std::pair(victim.cgroup, victim.phase)) return false;
    ++i;
  }
  return i == saved_.size();
}

Result<> VictimsFile::save(const std::vector<Victim>& victims) {
  if (unchanged(victims)) return {};
  std::vector<Victim> persistent;
  std::vector<std::pair<CgroupId, Victim::Phase>> saved;
  for (const Victim& victim : victims) {
    if (!is_persistent(victim)) continue;
    persistent.push_back(victim);
    saved.emplace_back(victim.cgroup, victim.phase);
  }
  if (auto written = file_.save(persistent); !written) return written;
  saved_ = std::move(saved);
  return {};
}

Result<std::vector<Victim>> VictimsFile::load() {
  auto loaded = file_.load();
  if (!loaded) return loaded;
  std::vector<Victim> victims;
  for (Victim& victim : *loaded) {
    if (!is_complete(victim)) return failure(file_.path().string() + ": a victim is incomplete");
    victims.push_back(after_restart(std::move(victim)));
  }
  for (const Victim& victim : victims)
    saved_.emplace_back(victim.cgroup, victim.phase);
  return victims;
}

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
