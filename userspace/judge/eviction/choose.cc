// SPDX-License-Identifier: Apache-2.0
#include "judge/eviction/choose.h"

#include "judge/eviction/rank.h"
#include "judge/eviction/victims.h"

#include <algorithm>

namespace headroom::judge_eviction {
namespace {

using Fate = Candidate::Fate;

bool dying(const History& history, CgroupId cgroup) {
  return std::any_of(history.victims.begin(), history.victims.end(),
                     [&](const Victim& victim) { return victim.cgroup == cgroup; });
}

Candidate candidate(const Snapshot& snapshot, const History& history, std::uint32_t index) {
  const PodReading& reading = snapshot.pods[index];
  Candidate entry{.pod = index,
                  .working_set = reading.record ? working_set(*reading.record) : std::nullopt,
                  .memory_request = reading.memory_request,
                  .priority = reading.pod->priority};
  if (reading.critical)
    entry.fate = Fate::kCritical;
  else if (dying(history, reading.cgroup))
    entry.fate = Fate::kDying;
  else if (reading.record && reading.record->populated == 0)
    entry.fate = Fate::kEmpty;
  else if (!entry.working_set)
    entry.fate = Fate::kUnknown;
  return entry;
}

// The kubelet ranks a pod without stats first of all and kills it on no evidence. Here it keeps
// that rank but is passed over while anyone with a reading can be evicted.
Candidate* pick(std::vector<Candidate>& ranking) {
  for (const Fate eligible : {Fate::kOutranked, Fate::kUnknown})
    for (Candidate& entry : ranking)
      if (entry.fate == eligible) return &entry;
  return nullptr;
}

// The grace a pod is given: none for a hard threshold unless policy grants it; for a soft one
// min(maximum, the pod's own), a negative maximum deferring to the pod (KUBELET.md 1.7).
Duration grace_for(const Policy& policy, const Reason& reason, const Pod& pod) {
  if (reason.hard) return policy.hard_grace;
  constexpr std::chrono::seconds kDefaultPodGrace{30};
  const auto own = pod.termination_grace.value_or(kDefaultPodGrace);
  return policy.max_pod_grace.count() < 0 ? own : std::min(policy.max_pod_grace, own);
}

}  // namespace

void choose(const Policy& policy, const Snapshot& snapshot, const Reason& reason,
            Verdict& verdict) {
  for (std::uint32_t i = 0; i < snapshot.pods.size(); ++i)
    verdict.ranking.push_back(candidate(snapshot, verdict.after, i));
  rank_by_memory(verdict.ranking);
  Candidate* chosen = pick(verdict.ranking);
  if (!chosen) return;
  chosen->fate = Fate::kChosen;

  const PodReading& reading = snapshot.pods[chosen->pod];
  const Duration grace = grace_for(policy, reason, *reading.pod);
  const bool at_once = grace <= Duration::zero();
  verdict.decisions.push_back(
      Decision{.act = at_once ? Act::kKill : Act::kTerminate,
               .pod = reading.pod,
               .cgroup = reading.cgroup,
               .reason = reason,
               .standing = {.rank = static_cast<std::uint32_t>(chosen - verdict.ranking.data()),
                            .candidates = static_cast<std::uint32_t>(verdict.ranking.size()),
                            .working_set = chosen->working_set,
                            .memory_request = chosen->memory_request},
               .decided_at = snapshot.at,
               .deadline = snapshot.at + (at_once ? return_window(chosen->working_set) : grace)});
}

}  // namespace headroom::judge_eviction
