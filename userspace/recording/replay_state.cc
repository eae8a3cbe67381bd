// SPDX-License-Identifier: Apache-2.0
#include "recording/replay_state.h"

#include <algorithm>
#include <span>

namespace headroom::recording {
namespace {

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

}  // namespace

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
  for (const auto& [cgroup, killed] : killed_)
    if (snapshot.at >= killed.gone_at) corrected->available += held_by(recorded(cgroup));
  for (const PartialKill& part : partial_kills_)
    if (snapshot.at >= part.gone_at && !gone(part.pod, snapshot.at))
      corrected->available += std::min(part.bytes, held_by(recorded(part.pod)));
  for (const auto& [cgroup, spared] : spared_)
    if (!gone(cgroup, snapshot.at))
      corrected->available -= held_by(&spared.reading) - held_by(recorded(cgroup));
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

}  // namespace headroom::recording
