// SPDX-License-Identifier: Apache-2.0
#include "report/eviction/flight_recorder.h"

#include <algorithm>
#include <span>

namespace headroom::report {
namespace {

void fill(SignalSample& reading, const Snapshot& snapshot, const Verdict& verdict) {
  reading.at = snapshot.at;
  for (std::size_t i = 0; i < kSignals; ++i) {
    const auto& seen = snapshot.observations[i];
    reading.available[i] = seen ? std::optional(seen->available) : std::nullopt;
  }
  reading.below = reading.met = 0;
  for (const ThresholdReading& threshold_reading : verdict.thresholds) {
    if (threshold_reading.index >= 64) continue;
    const std::uint64_t bit = std::uint64_t{1} << threshold_reading.index;
    if (threshold_reading.below_since) reading.below |= bit;
    if (threshold_reading.met) reading.met |= bit;
  }
}

// Inserts the pod among those with the largest working sets, if it is one of them.
void insert_by_working_set(TopPodsSample& row, const PodReading& reading, Bytes held) {
  if (row.count == TopPodsSample::kMax && row.pods[row.count - 1].working_set >= held) return;
  std::size_t at = row.count < TopPodsSample::kMax ? row.count++ : row.count - 1;
  for (; at > 0 && row.pods[at - 1].working_set < held; --at)
    std::swap(row.pods[at], row.pods[at - 1]);
  const bool stalls = reading.record->valid & HR_PSI;
  row.pods[at] = {
      .pod = reading.pod,
      .working_set = held,
      .stalled_ns = stalls ? reading.record->psi_ns[HR_PSI_MEMORY][HR_PSI_SOME] : HR_UNKNOWN};
}

void fill(TopPodsSample& row, const Snapshot& snapshot) {
  row.at = snapshot.at;
  row.count = 0;
  for (const PodReading& reading : snapshot.pods)
    if (const auto held = reading.record ? working_set(*reading.record) : std::nullopt)
      insert_by_working_set(row, reading, *held);
  for (PodMemorySample& unused : std::span(row.pods).subspan(row.count))
    unused.pod.reset();
}

template <class T, std::size_t kCapacity>
bool due(const Ring<T, kCapacity>& ring, Instant at) {
  return ring.size() == 0 || at - ring.newest().at >= FlightRecording::kStep;
}

}  // namespace

FlightRecorder::FlightRecorder()
    : live_(std::make_unique<FlightRecording>()), pool_(std::make_shared<Pool>()) {}

void FlightRecorder::record(const Snapshot& snapshot, const Verdict& verdict) {
  SignalSample& turn = live_->turns.next_slot();
  fill(turn, snapshot, verdict);
  if (due(live_->seconds, snapshot.at)) live_->seconds.next_slot() = turn;
  if (snapshot.cgroups && due(live_->pods, snapshot.at)) fill(live_->pods.next_slot(), snapshot);
}

FlightRecording* FlightRecorder::take() {
  const std::lock_guard lock(pool_->mutex);
  const auto free = std::find(pool_->held.begin(), pool_->held.end(), false);
  if (free == pool_->held.end()) return nullptr;
  *free = true;
  return &pool_->recordings[static_cast<std::size_t>(free - pool_->held.begin())];
}

std::shared_ptr<const FlightRecording> FlightRecorder::capture(const Policy& policy,
                                                               const Verdict& verdict, Instant at) {
  if (auto shared = latest_.lock(); shared && at - shared->at < kShareWindow) return shared;
  FlightRecording* flight_recording = take();
  if (!flight_recording) {
    ++lost_;
    return nullptr;
  }
  flight_recording->at = at;
  flight_recording->seconds = live_->seconds;
  flight_recording->turns = live_->turns;
  flight_recording->pods = live_->pods;
  fill_thresholds(flight_recording->thresholds, policy, verdict);
  std::shared_ptr<const FlightRecording> captured(
      flight_recording, [pool = pool_](const FlightRecording* done) {
        const std::lock_guard lock(pool->mutex);
        pool->held[static_cast<std::size_t>(done - pool->recordings.data())] = false;
      });
  latest_ = captured;
  return captured;
}

}  // namespace headroom::report
