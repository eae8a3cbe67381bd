// SPDX-License-Identifier: Apache-2.0
#include "daemon/state/eviction_state.h"

#include "base/log/journal.h"
#include "daemon/state/unversioned_state.h"

#include <algorithm>
#include <iterator>
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
  victim.page_tables = {};
  return victim;
}

// Victims of mode observe are not kept over a restart.
bool is_persistent(const Victim& victim) {
  return victim.phase != Victim::Phase::kDryRun;
}

// The same eviction, in whatever phase.
bool is_same(const Victim& a, const Victim& b) {
  return a.cgroup == b.cgroup && a.part.is(b.part);
}

bool is_same_step(const Victim& a, const Victim& b) {
  return is_same(a, b) && a.phase == b.phase && a.killed_at == b.killed_at;
}

void remove_recorded(std::vector<Victim>& victims,
                     const std::vector<report::RecordedEviction>& recorded) {
  std::erase_if(victims, [&](const Victim& victim) {
    const report::RecordedEviction eviction{.cgroup = victim.cgroup,
                                            .terminated_at = victim.terminated_at,
                                            .killed_at = victim.killed_at};
    return std::ranges::find(recorded, eviction) != recorded.end();
  });
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
    if (i == saved_.size() || !is_same_step(saved_[i], victim)) return false;
    ++i;
  }
  return i == saved_.size();
}

// Those that were saved and are missing now, after those that ended before.
std::vector<Victim> VictimsFile::ended(const std::vector<Victim>& victims) const {
  std::vector<Victim> ended = ended_;
  for (const Victim& saved : saved_)
    if (std::ranges::none_of(victims, [&](const Victim& v) { return is_same(v, saved); }))
      ended.push_back(saved);
  if (std::ssize(ended) > kMaxEnded) ended.erase(ended.begin(), ended.end() - kMaxEnded);
  return ended;
}

Result<> VictimsFile::save(const std::vector<Victim>& victims, bool recorded) {
  if (unchanged(victims) && (!recorded || ended_.empty())) return {};
  std::vector<Victim> in_progress, all;
  std::ranges::copy_if(victims, std::back_inserter(in_progress), is_persistent);
  std::vector<Victim> ended = recorded ? std::vector<Victim>{} : this->ended(victims);
  std::ranges::copy(in_progress, std::back_inserter(all));
  std::ranges::copy(ended, std::back_inserter(all));
  if (auto written = file_.save(all); !written) return written;
  saved_ = std::move(in_progress);
  ended_ = std::move(ended);
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
  saved_ = victims;
  return victims;
}

void EvictionState::save(const History& history, bool recorded) {
  const auto victims = victims_file_.save(history.victims, recorded);
  const auto timers = taint_timers_file_.save(history.taint_timers);
  const bool failed = !victims || !timers;
  if (failed && !std::exchange(failure_logged_, true))
    log::error("{}: a restarted daemon would not resume evictions and taint timers in progress",
               victims ? timers.error().what : victims.error().what);
  failure_logged_ = failed;
}

std::vector<Victim> EvictionState::load_victims(const RecordedEvictions& recorded) {
  auto victims = victims_file_.load();
  if (!victims) {
    log::error("{}", victims.error().what);
    return {};
  }
  if (!victims->empty()) remove_recorded(*victims, recorded());
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
