// SPDX-License-Identifier: Apache-2.0
#include "report/minute.h"

#include <algorithm>
#include <span>

namespace headroom::report {
namespace {

void fill(MinuteReading& reading, const Snapshot& snapshot, const Verdict& verdict) {
  reading.at = snapshot.at;
  for (std::size_t i = 0; i < kSignals; ++i) {
    const auto& seen = snapshot.observations[i];
    reading.available[i] = seen ? std::optional(seen->available) : std::nullopt;
  }
  reading.below = reading.met = 0;
  for (const ThresholdStanding& standing : verdict.thresholds) {
    if (standing.index >= 64) continue;
    const std::uint64_t bit = std::uint64_t{1} << standing.index;
    if (standing.below_since) reading.below |= bit;
    if (standing.met) reading.met |= bit;
  }
}

// Keeps its place among those who hold most, or makes way.
void place(MinutePods& row, const PodReading& reading, Bytes held) {
  if (row.count == MinutePods::kMost && row.pods[row.count - 1].working_set >= held) return;
  std::size_t at = row.count < MinutePods::kMost ? row.count++ : row.count - 1;
  for (; at > 0 && row.pods[at - 1].working_set < held; --at)
    std::swap(row.pods[at], row.pods[at - 1]);
  const bool stalls = reading.record->valid & HR_PSI;
  row.pods[at] = {
      .pod = reading.pod,
      .working_set = held,
      .stalled_ns = stalls ? reading.record->psi_ns[HR_PSI_MEMORY][HR_PSI_SOME] : HR_UNKNOWN};
}

void fill(MinutePods& row, const Snapshot& snapshot) {
  row.at = snapshot.at;
  row.count = 0;
  for (const PodReading& reading : snapshot.pods)
    if (const auto held = reading.record ? working_set(*reading.record) : std::nullopt)
      place(row, reading, *held);
  for (MinutePod& unused : std::span(row.pods).subspan(row.count))
    unused.pod.reset();
}

template <class T, std::size_t kPlaces>
bool due(const Ring<T, kPlaces>& ring, Instant at) {
  return ring.size() == 0 || at - ring.newest().at >= Minute::kStep;
}

}  // namespace

MinuteRecorder::MinuteRecorder()
    : live_(std::make_unique<Minute>()), pool_(std::make_shared<Pool>()) {}

void MinuteRecorder::note(const Snapshot& snapshot, const Verdict& verdict) {
  MinuteReading& turn = live_->turns.next();
  fill(turn, snapshot, verdict);
  if (due(live_->seconds, snapshot.at)) live_->seconds.next() = turn;
  if (snapshot.cgroups && due(live_->pods, snapshot.at)) fill(live_->pods.next(), snapshot);
}

Minute* MinuteRecorder::take() {
  const std::lock_guard lock(pool_->mutex);
  const auto free = std::find(pool_->held.begin(), pool_->held.end(), false);
  if (free == pool_->held.end()) return nullptr;
  *free = true;
  return &pool_->minutes[static_cast<std::size_t>(free - pool_->held.begin())];
}

std::shared_ptr<const Minute> MinuteRecorder::freeze(const Policy& policy, const Verdict& verdict,
                                                     Instant at) {
  if (auto shared = latest_.lock(); shared && at - shared->at < kShared) return shared;
  Minute* minute = take();
  if (!minute) {
    ++lost_;
    return nullptr;
  }
  minute->at = at;
  minute->seconds = live_->seconds;
  minute->turns = live_->turns;
  minute->pods = live_->pods;
  fill_thresholds(minute->thresholds, policy, verdict);
  std::shared_ptr<const Minute> frozen(minute, [pool = pool_](const Minute* done) {
    const std::lock_guard lock(pool->mutex);
    pool->held[static_cast<std::size_t>(done - pool->minutes.data())] = false;
  });
  latest_ = frozen;
  return frozen;
}

}  // namespace headroom::report
