// SPDX-License-Identifier: Apache-2.0
#include "report/view/node_history.h"

namespace headroom::report {

HistorySample history_sample(const Snapshot& snapshot) {
  HistorySample sample;
  sample.at = snapshot.at;
  for (std::size_t i = 0; i < kSignals; ++i)
    if (const auto& seen = snapshot.observations[i]) sample.available[i] = seen->available;
  const Waits& waits = snapshot.waits;
  for (std::size_t cause = 0; waits.node_stalls && cause < HR_STALL_CAUSES; ++cause)
    sample.waited[cause] = waits.node_stalls->causes[cause].ns;
  if (waits.node_throttles) sample.waited.back() = waits.node_throttles->ns;
  return sample;
}

const HistorySample& NodeHistory::Ring::nth(std::size_t i) const {
  return samples[(next + samples.size() - size + i) % samples.size()];
}

NodeHistory::NodeHistory() {
  for (std::size_t i = 0; i < kResolutions.size(); ++i)
    rings_[i].samples.resize(kResolutions[i].samples);
}

void NodeHistory::add(const Snapshot& snapshot) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  std::optional<HistorySample> sample;
  for (std::size_t i = 0; i < kResolutions.size(); ++i) {
    Ring& ring = rings_[i];
    const bool due =
        ring.size == 0 || snapshot.at - ring.nth(ring.size - 1).at >= kResolutions[i].period;
    if (!due) continue;
    if (!sample) sample = history_sample(snapshot);
    ring.samples[ring.next] = *sample;
    ring.next = (ring.next + 1) % ring.samples.size();
    if (ring.size < ring.samples.size()) ++ring.size;
  }
}

std::vector<HistorySample> NodeHistory::samples() const {
  std::vector<HistorySample> all;
  all.reserve(kResolutions[0].samples + kResolutions[1].samples);
  const std::lock_guard lock(mutex_);
  const Ring &fine = rings_[0], &coarse = rings_[1];
  for (std::size_t i = 0; i < coarse.size; ++i) {
    const HistorySample& sample = coarse.nth(i);
    if (fine.size > 0 && sample.at >= fine.nth(0).at) break;
    all.push_back(sample);
  }
  for (std::size_t i = 0; i < fine.size; ++i)
    all.push_back(fine.nth(i));
  return all;
}

}  // namespace headroom::report
