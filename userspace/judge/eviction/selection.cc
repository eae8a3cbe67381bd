// SPDX-License-Identifier: Apache-2.0
#include "judge/eviction/selection.h"

#include "judge/eviction/cpu_eviction.h"
#include "judge/eviction/predicted_release.h"
#include "judge/eviction/rank/rank.h"
#include "judge/eviction/unit_selection.h"
#include "judge/eviction/victims.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace headroom::judge_eviction {
namespace {

using Selection = Candidate::Selection;

// A pod's disk usage older than this is asked for again before anyone is chosen by it...
constexpr Duration kDiskStale = std::chrono::seconds(60);
// ...for so long; then by what is known.
constexpr Duration kMaxMeasurementWait = std::chrono::seconds(30);

// In one round; the next is milliseconds away.
constexpr std::size_t kMaxVictimsPerTurn = 32;

// Before its place in the ranking is known.
Selection select_or_skip(const PodReading& reading, const History& history,
                         const Candidate& candidate, Instant at) {
  if (reading.critical) return Selection::kCritical;
  if (is_excluded(history, reading, at)) return Selection::kAlreadyTerminating;
  if (reading.record && reading.record->populated == 0) return Selection::kEmpty;
  return candidate.usage ? Selection::kOutranked : Selection::kUnknown;
}

// A static pod may be the cause of the shortage: over its request, and first of all that live.
void clear_critical_exemption(const Snapshot& snapshot, std::vector<Candidate>& ranking) {
  const auto first = std::find_if(ranking.begin(), ranking.end(), [](const Candidate& each) {
    return each.selection != Selection::kEmpty && each.selection != Selection::kAlreadyTerminating;
  });
  if (first == ranking.end() || first->selection != Selection::kCritical) return;
  const Pod& pod = *snapshot.pods[first->pod].pod;
  if (pod.is_static && pod.priority < kSystemCriticalPriority && first->usage &&
      *first->usage > first->request)
    first->selection = Selection::kOutranked;
}

// What all candidates of this fate should give back together.
std::int64_t total_predicted(const std::vector<Candidate>& ranking, Selection selection) {
  std::int64_t sum = 0;
  for (const Candidate& entry : ranking)
    if (entry.selection == selection &&
        __builtin_add_overflow(sum, entry.predicted.value_or(0), &sum))
      return std::numeric_limits<std::int64_t>::max();
  return sum;
}

// The kubelet ranks a pod without stats first of all and kills it on no evidence. Here it keeps
// that rank but is passed over while a pod with a reading can be evicted. One that gives back next
// to nothing comes last; short of memory it is better than the kernel's OOM killer, else it is
// evicted only if it and those like it hold what is missing.
Candidate* choose_next(Signal signal, std::vector<Candidate>& ranking, PodDescription description,
                       bool may_choose_small) {
  const auto may_be_last = [&](const Candidate& entry) {
    return may_choose_small && (wants_memory(signal) || entry.predicted.value_or(0) > 0);
  };
  for (const Selection eligible :
       {Selection::kOutranked, Selection::kUnknown, Selection::kNothingToFree})
    for (Candidate& entry : ranking)
      if (entry.selection == eligible && entry.description == description &&
          (eligible != Selection::kNothingToFree || may_be_last(entry)))
        return &entry;
  return nullptr;
}

// A pod whose description is awaited is chosen only when every other pod is gone or exempt.
Candidate* choose_next(Signal signal, std::vector<Candidate>& ranking, std::int64_t missing) {
  if (signal == Signal::kCpuPressure) return choose_for_cpu(ranking);
  const bool may_choose_small =
      wants_memory(signal) || total_predicted(ranking, Selection::kNothingToFree) >= missing;
  for (const PodDescription description :
       {PodDescription::kComplete, PodDescription::kAwaited, PodDescription::kAwaitedProtected})
    if (Candidate* const found = choose_next(signal, ranking, description, may_choose_small))
      return found;
  return nullptr;
}

// For memory: nearly all that the pod holds is page cache, which stays, and what it would free is
// not enough. For other signals: what it would free is next to nothing beside what is missing; and
// if all candidates together do not hold what is missing, they did not cause the shortage, so a
// single one must hold half of it.
bool frees_too_little(Signal signal, const Candidate& candidate, std::int64_t missing,
                      std::int64_t together) {
  constexpr std::int64_t kWorthwhile = 8;  // at least one part in so many
  if (!candidate.predicted || !candidate.usage || *candidate.predicted >= missing) return false;
  if (wants_memory(signal)) return *candidate.predicted < *candidate.usage / kWorthwhile;
  const std::int64_t parts = together < missing ? 2 : kWorthwhile;
  return *candidate.predicted == 0 || *candidate.predicted < missing / parts;
}

void mark_futile(Signal signal, std::vector<Candidate>& ranking, std::int64_t missing) {
  if (signal == Signal::kCpuPressure) return mark_futile_for_cpu(ranking, missing);
  const std::int64_t together = total_predicted(ranking, Selection::kOutranked);
  for (Candidate& entry : ranking)
    if (entry.selection == Selection::kOutranked &&
        frees_too_little(signal, entry, missing, together))
      entry.selection = Selection::kNothingToFree;
}

// The grace a pod is given: none for a hard threshold unless policy grants it; for a soft one
// min(maximum, the pod's own), a negative maximum deferring to the pod (kubelet: eviction).
Duration grace_for(const Policy& policy, const Reason& reason, const Pod& pod) {
  if (reason.hard) return policy.hard_grace;
  constexpr std::chrono::seconds kDefaultPodGrace{30};
  const auto own = pod.termination_grace.value_or(kDefaultPodGrace);
  return policy.max_pod_grace.count() < 0 ? own : std::min(policy.max_pod_grace, own);
}

std::optional<Bytes> working_set_of(const PodReading& reading) {
  return reading.record ? working_set(*reading.record) : std::nullopt;
}

}  // namespace

Act first_act(const Pod& pod, Duration grace) {
  if (grace <= Duration::zero()) return Act::kKill;
  const bool pre_stop =
      std::any_of(pod.containers.begin(), pod.containers.end(),
                  [](const Container& container) { return !container.pre_stop.empty(); });
  return pre_stop ? Act::kPreStop : Act::kTerminate;
}

Decision make_eviction(const Policy& policy, const Snapshot& snapshot, const PodReading& reading,
                       const Reason& reason) {
  const Duration grace = grace_for(policy, reason, *reading.pod);
  Decision decision{.act = first_act(*reading.pod, grace),
                    .pod = reading.pod,
                    .cgroup = reading.cgroup,
                    .reason = reason,
                    .rank_info = {},
                    .steps = {},
                    .decided_at = snapshot.at,
                    .deadline = snapshot.at + grace};
  decision.rank_info.working_set = working_set_of(reading);
  decision.rank_info.memory_request = reading.memory_request;
  if (decision.act == Act::kKill)
    decision.deadline = snapshot.at + return_window(reason.signal, decision.rank_info.working_set);
  return decision;
}

bool needs_disk_measurement(const Snapshot& snapshot, const Reason& reason,
                            const History& history) {
  if (!is_disk(reason.signal) || snapshot.at - reason.first_crossed >= kMaxMeasurementWait)
    return false;
  const Instant wanted = std::max(reason.first_crossed, snapshot.at - kDiskStale);
  return std::any_of(snapshot.pods.begin(), snapshot.pods.end(), [&](const PodReading& reading) {
    const bool matters = !reading.critical && !is_excluded(history, reading, snapshot.at) &&
                         !(reading.record && reading.record->populated == 0);
    return matters && (!reading.disk || reading.disk->at < wanted);
  });
}

namespace {

// The same of a part: it has no pre-stop commands, and is as large as it is.
void apply_partial_eviction(const EvictionScope& scope, const Snapshot& snapshot,
                            Decision& decision) {
  if (scope.part.whole()) return;
  const Bytes release{scope.release.value_or(0)};
  decision.part = scope.part;
  decision.rank_info.working_set = scope.held;
  decision.rank_info.memory_request = scope.request;
  decision.rank_info.predicted = scope.release;
  decision.rank_info.predicted_in = predicted_time(release);
  if (decision.act == Act::kPreStop) decision.act = Act::kTerminate;
  if (decision.act == Act::kKill)
    decision.deadline = snapshot.at + return_window(decision.reason.signal, release);
}

void add_eviction(const Policy& policy, const Snapshot& snapshot, const Reason& reason,
                  const Candidate& chosen, const EvictionScope& scope, Verdict& verdict) {
  const PodReading& reading = snapshot.pods[chosen.pod];
  Decision decision = make_eviction(policy, snapshot, reading, reason);
  decision.rank_info.rank = static_cast<std::uint32_t>(&chosen - verdict.ranking.data());
  decision.rank_info.candidates = static_cast<std::uint32_t>(verdict.ranking.size());
  decision.rank_info.usage = chosen.usage;
  decision.rank_info.request = chosen.request;
  decision.rank_info.predicted = chosen.predicted;
  if (chosen.predicted) decision.rank_info.predicted_in = predicted_time(reading);
  apply_partial_eviction(scope, snapshot, decision);
  verdict.decisions.push_back(std::move(decision));
}

// Writes verdict.ranking, unordered, each with what is known of its selection so far.
void list_candidates(const Policy& policy, const Snapshot& snapshot, Signal signal,
                     Verdict& verdict) {
  const SwapUse swap = swap_use(policy, snapshot, signal);
  for (std::uint32_t i = 0; i < snapshot.pods.size(); ++i) {
    Candidate entry = candidate_for(signal, snapshot.images, snapshot.pods[i], swap);
    entry.pod = i;
    if (signal == Signal::kCpuPressure) set_cpu_use(snapshot, snapshot.pods[i], entry);
    entry.selection = select_or_skip(snapshot.pods[i], verdict.after, entry, snapshot.at);
    if (signal != Signal::kCpuPressure)
      entry.predicted = predicted_release(signal, snapshot.pods[i], snapshot.images, swap);
    if (entry.predicted && wants_memory(signal))
      *entry.predicted -=
          std::min(*entry.predicted, expected_from_parts(verdict.after, snapshot.pods[i].cgroup));
    if (entry.predicted)
      *entry.predicted -=
          std::min(*entry.predicted,
                   retained_after_kill(verdict.after, snapshot.pods[i], signal, snapshot.at));
    verdict.ranking.push_back(entry);
  }
}

// Writes verdict.ranking, each with its selection, except for the pods that will be chosen.
void rank_all(const Policy& policy, const Snapshot& snapshot, Signal signal, std::int64_t missing,
              Verdict& verdict) {
  list_candidates(policy, snapshot, signal, verdict);
  rank(signal, verdict.ranking);
  if (policy.evict_static_culprits && signal != Signal::kCpuPressure)
    clear_critical_exemption(snapshot, verdict.ranking);
  mark_futile(signal, verdict.ranking, missing);
}

// Ranks only the given number of pods that may be chosen.
void rank_eligible(const Policy& policy, const Snapshot& snapshot, Signal signal, std::size_t most,
                   Verdict& verdict) {
  list_candidates(policy, snapshot, signal, verdict);
  mark_futile(signal, verdict.ranking, std::numeric_limits<std::int64_t>::max());
  std::erase_if(verdict.ranking,
                [](const Candidate& each) { return each.selection != Selection::kOutranked; });
  rank_top(signal, most, verdict.ranking);
}

}  // namespace

void choose(const Policy& policy, const Snapshot& snapshot, const Reason& reason,
            std::int64_t missing, Verdict& verdict) {
  rank_all(policy, snapshot, reason.signal, missing, verdict);
  for (std::size_t count = 0; count < kMaxVictimsPerTurn; ++count) {
    Candidate* const next = choose_next(reason.signal, verdict.ranking, missing);
    // After the first pod, only those whose release is known.
    if (!next || (count > 0 && next->selection != Selection::kOutranked)) return;
    next->selection = Selection::kChosen;
    const EvictionScope scope =
        choose_scope(policy, snapshot.pods[next->pod], reason, missing, verdict.after);
    add_eviction(policy, snapshot, reason, *next, scope, verdict);
    const auto expected = verdict.decisions.back().rank_info.predicted;
    if (!expected || is_disk(reason.signal) || reason.signal == Signal::kCpuPressure) return;
    missing -= *expected;
    if (missing <= 0) return;
  }
}

std::vector<Decision> rank_for_failsafe(Policy policy, const Snapshot& snapshot,
                                        const History& history, std::size_t most) {
  policy.hard_grace = {};
  Verdict verdict;
  verdict.after.victims = history.victims;
  verdict.after.partial_evictions = history.partial_evictions;
  Reason reason;
  reason.signal = Signal::kMemoryAvailable;
  reason.first_crossed = snapshot.at;
  // Whether a static pod may be evicted depends on the pods ranked before it.
  if (policy.evict_static_culprits)
    rank_all(policy, snapshot, reason.signal, std::numeric_limits<std::int64_t>::max(), verdict);
  else
    rank_eligible(policy, snapshot, reason.signal, most, verdict);
  while (verdict.decisions.size() < most) {
    Candidate* const next = choose_next(reason.signal, verdict.ranking, 0);
    if (!next || next->selection != Selection::kOutranked) break;
    next->selection = Selection::kChosen;
    // The part, if that is what is asked for; then what is left of the pod.
    const PodReading& reading = snapshot.pods[next->pod];
    const EvictionScope scope = choose_scope(policy, reading, reason, 0, verdict.after);
    add_eviction(policy, snapshot, reason, *next, scope, verdict);
    if (!scope.part.whole()) add_eviction(policy, snapshot, reason, *next, {}, verdict);
  }
  return std::move(verdict.decisions);
}

}  // namespace headroom::judge_eviction
