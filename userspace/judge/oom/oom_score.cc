// SPDX-License-Identifier: Apache-2.0
#include "judge/oom/oom_score.h"

#include "judge/resources/pod_resources.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <optional>
#include <string_view>

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

namespace headroom {
namespace {

__extension__ using Wide = __int128;  // 1000 × a saturated request

// Burstable stays clear of both neighbours: above Guaranteed's -997 plus 1000, below BestEffort's
// 1000. Upstream steps aside for exactly 1000 only; a container above its pod's own request goes
// beyond it there (up to 85794 in the vectors), and the write to oom_score_adj fails.
constexpr Wide kMinBurstableScore = 1000 + kGuaranteedOomScore;
constexpr Wide kMaxBurstableScore = kBestEffortOomScore - 1;

bool is_node_critical(const Pod& pod) {
  return is_critical(pod) && pod.priority_class == "system-node-critical";
}

std::int64_t memory_request(const Container& container) {
  const auto own = container.requests.find("memory");
  return own == container.requests.end() ? 0 : own->second.value();
}

// What the pod asks for beyond its containers, in equal parts. Negative when they ask for more; a
// zero is as if it had not been said.
std::int64_t share_of_pod(const Pod& pod) {
  if (!pod.pod_level || memory_request(*pod.pod_level) == 0) return 0;
  Pod bare = pod;
  bare.pod_level.reset();
  bare.overhead.clear();
  const std::int64_t together = pod_requests(bare)["memory"].value();
  const auto containers = std::ssize(pod.containers) + std::ssize(pod.init_containers);
  return containers == 0 ? 0 : (memory_request(*pod.pod_level) - together) / containers;
}

Wide raw_score(std::int64_t request, Bytes capacity) {
  return 1000 - Wide{1000} * request / capacity.count;
}

// A sidecar must not die before the containers it serves: it is as safe as the least safe of them
// would like (kubernetes/kubernetes 128029).
std::int64_t least_regular_request(const Pod& pod) {
  std::optional<std::int64_t> least;
  for (const Container& container : pod.containers) {
    const std::int64_t own = memory_request(container);
    least = least ? std::min(*least, own) : own;
  }
  return least ? *least : 0;
}

}  // namespace

int oom_score_adj(const Pod& pod, const Container& container, Bytes memory_capacity) {
  assert(memory_capacity.count > 0);
  if (is_node_critical(pod)) return kGuaranteedOomScore;
  switch (qos_class(pod)) {
    case QosClass::kGuaranteed:
      return kGuaranteedOomScore;
    case QosClass::kBestEffort:
      return kBestEffortOomScore;
    case QosClass::kBurstable:
      break;
  }
  const std::int64_t share = share_of_pod(pod);
  Wide score = raw_score(memory_request(container) + share, memory_capacity);
  if (container.sidecar)
    score = std::min(score, raw_score(least_regular_request(pod) + share, memory_capacity));
  return static_cast<int>(std::clamp(score, kMinBurstableScore, kMaxBurstableScore));
}

}  // namespace headroom
