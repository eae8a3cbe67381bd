// SPDX-License-Identifier: Apache-2.0
#include "judge/eviction/cpu_eviction.h"

#include "judge/resources/pod_resources.h"

#include <algorithm>

namespace headroom::judge_eviction {
namespace {

using Selection = Candidate::Selection;

bool is_over_request(const Candidate& candidate) {
  return candidate.selection == Selection::kOutranked && candidate.usage && candidate.predicted &&
         *candidate.usage > candidate.request;
}

}  // namespace

void set_cpu_use(const Snapshot& snapshot, const PodReading& pod, Candidate& candidate) {
  candidate.request = candidate.credit = eviction_request(*pod.pod, "cpu").milli_value();
  const CpuUse* use =
      snapshot.waits.cpu_use ? snapshot.waits.cpu_use->find(pod.cgroup.value) : nullptr;
  if (!use) return;
  candidate.usage = use->used.count;
  candidate.predicted = use->held_up;
}

void mark_futile_for_cpu(std::vector<Candidate>& ranking, std::int64_t missing) {
  std::int64_t together = 0;
  for (const Candidate& entry : ranking)
    if (is_over_request(entry)) together += *entry.predicted;
  const std::int64_t least = std::max<std::int64_t>(missing / (together < missing ? 2 : 8), 1);
  for (Candidate& entry : ranking) {
    const bool explains = is_over_request(entry) && *entry.predicted >= least;
    if (entry.selection == Selection::kOutranked && !explains)
      entry.selection = Selection::kNothingToFree;
  }
}

Candidate* choose_for_cpu(std::vector<Candidate>& ranking) {
  const auto found = std::find_if(ranking.begin(), ranking.end(), [](const Candidate& entry) {
    return entry.selection == Selection::kOutranked &&
           entry.description == PodDescription::kComplete;
  });
  return found == ranking.end() ? nullptr : &*found;
}

}  // namespace headroom::judge_eviction
