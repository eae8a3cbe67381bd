// SPDX-License-Identifier: Apache-2.0
#include "judge/oom/oom_mirror.h"

#include "judge/oom/oom_score.h"
#include "judge/resources/qos.h"

#include <algorithm>
#include <optional>

namespace headroom::judge_eviction {
namespace {

struct ScoreRange {
  int lowest = 0, highest = 0;

  // The value of the pod that has `place` pods of its class before it.
  int at(unsigned place) const { return lowest + ((highest - lowest) >> std::min(2 * place, 20U)); }
};

bool is_adjustable(const PodReading& reading) {
  return !reading.critical && reading.pod->source == PodSource::kManifest &&
         qos_class(*reading.pod) != QosClass::kGuaranteed;
}

void include(const Pod& pod, Bytes capacity, std::optional<ScoreRange>& band) {
  const auto widen = [&](const Container& container) {
    const int score = oom_score_adj(pod, container, capacity);
    if (!band) band = ScoreRange{score, score};
    band->lowest = std::min(band->lowest, score);
    band->highest = std::max(band->highest, score);
  };
  std::for_each(pod.containers.begin(), pod.containers.end(), widen);
}

std::optional<ScoreRange> burstable_band(const Snapshot& snapshot, Bytes capacity) {
  std::optional<ScoreRange> band;
  for (const PodReading& reading : snapshot.pods)
    if (is_adjustable(reading) && qos_class(*reading.pod) == QosClass::kBurstable)
      include(*reading.pod, capacity, band);
  return band;
}

ScoreRange best_effort_band(const std::optional<ScoreRange>& burstable) {
  const int above = burstable ? burstable->highest + 1 : 0;
  return {.lowest = std::max(kMinMirroredScore, above), .highest = kBestEffortOomScore};
}

}  // namespace

std::vector<OomScore> mirrored_oom_scores(const Snapshot& snapshot, std::span<const Decision> first,
                                          Bytes memory_capacity) {
  const auto burstable = burstable_band(snapshot, memory_capacity);
  const ScoreRange best_effort = best_effort_band(burstable);
  const auto band_of = [&](const PodReading& reading) {
    return qos_class(*reading.pod) == QosClass::kBestEffort ? best_effort : burstable.value();
  };
  const auto rank_in_class = [&](const PodReading& reading) {
    unsigned before = 0;
    for (const Decision& decision : first) {
      if (!decision.part.whole()) continue;  // its pod comes next
      if (decision.cgroup == reading.cgroup) return before;
      if (qos_class(*decision.pod) == qos_class(*reading.pod)) ++before;
    }
    return static_cast<unsigned>(snapshot.pods.size());
  };
  std::vector<OomScore> scores;
  for (const PodReading& reading : snapshot.pods)
    if (is_adjustable(reading))
      scores.push_back({reading.cgroup, band_of(reading).at(rank_in_class(reading))});
  return scores;
}

}  // namespace headroom::judge_eviction
