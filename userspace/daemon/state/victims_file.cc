// SPDX-License-Identifier: Apache-2.0
#include "daemon/state/victims_file.h"

#include "daemon/state/eviction_fields.h"
#include "daemon/state/unversioned_state.h"

#include <utility>

namespace headroom::daemon {
namespace {

namespace fs = std::filesystem;

// The actions of the earlier daemon's threads ended with it. Pre-stop commands go on by themselves:
// their deadline stays. A removal starts again. What its sweeps had read is void.
Victim after_restart(Victim victim) {
  if (victim.phase == Victim::Phase::kRemoving) victim.phase = Victim::Phase::kKilled;
  victim.gone_at = {};
  victim.due_before.reset();
  victim.due.reset();
  victim.left.reset();
  victim.ran = {};
  return victim;
}

// A victim of mode observe ends with its daemon.
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

}  // namespace headroom::daemon
