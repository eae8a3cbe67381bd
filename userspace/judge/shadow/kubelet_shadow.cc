// SPDX-License-Identifier: Apache-2.0
#include "judge/eviction/rank/rank.h"

#include <headroom/shadow.h>

#include <algorithm>

namespace headroom {
namespace {

// Four signals are ours alone.
bool kubelet_has_signal(Signal signal) {
  return signal != Signal::kSwapAvailable && signal != Signal::kKernelMemAvailable &&
         !is_share_of_time(signal);
}

// The first of its looks no earlier than `at`.
Instant sync_at_or_after(Instant next_kubelet_sync, Instant at) {
  if (at <= next_kubelet_sync) return next_kubelet_sync;
  const auto syncs = (at - next_kubelet_sync + kKubeletPeriod - Duration(1)) / kKubeletPeriod;
  return next_kubelet_sync + syncs * kKubeletPeriod;
}

void take_samples(const Snapshot& snapshot, ShadowState& state) {
  if (!state.sample || !snapshot.cgroups) return;
  state.sample = false;
  state.sampled_at = snapshot.at;
  state.samples.clear();
  for (const PodReading& reading : snapshot.pods) {
    const auto held = reading.record ? working_set(*reading.record) : std::nullopt;
    state.samples.push_back({reading.cgroup, held ? std::optional(held->count) : std::nullopt});
  }
  std::sort(state.samples.begin(), state.samples.end(),
            [](const auto& a, const auto& b) { return a.cgroup < b.cgroup; });
}

std::optional<std::int64_t> sampled(const ShadowState& state, CgroupId cgroup) {
  const auto it = std::lower_bound(
      state.samples.begin(), state.samples.end(), cgroup,
      [](const ShadowState::Sample& sample, CgroupId id) { return sample.cgroup < id; });
  if (it == state.samples.end() || it->cgroup != cgroup) return std::nullopt;
  return it->usage;
}

bool below(const ThresholdReading& rank_info) {
  return rank_info.limit && rank_info.available && *rank_info.available < *rank_info.limit;
}

// One look: clocks of thresholds as it keeps them. True: it would act on one.
bool run_sync(const Policy& policy, const Snapshot& snapshot, const Verdict& verdict,
              ShadowState& state) {
  bool acts = false;
  for (const ThresholdReading& rank_info : verdict.thresholds) {
    auto& first = state.first_observed[rank_info.index];
    if (!kubelet_has_signal(policy.thresholds[rank_info.index].signal) || !below(rank_info)) {
      first.reset();
      continue;
    }
    if (!first) first = snapshot.at;
    if (snapshot.at - *first >= policy.thresholds[rank_info.index].grace) acts = true;
  }
  state.sample = true;
  state.next_kubelet_sync = sync_at_or_after(state.next_kubelet_sync, snapshot.at + Duration(1));
  return acts;
}

bool has_pending_eviction(const Verdict& verdict) {
  return std::any_of(verdict.after.victims.begin(), verdict.after.victims.end(),
                     [](const Victim& victim) { return victim.phase != Victim::Phase::kTimedOut; });
}

// Ranked among others, for a threshold it has as well.
bool chosen_by_rank(const Decision& decision) {
  return decision.pod && decision.rank_info.candidates > 0 &&
         kubelet_has_signal(decision.reason.signal) && decision.reason.cause == Cause::kThreshold &&
         decision.reason.limit == StorageLimit::kNone;
}

// When it would have acted on the same threshold.
Instant acts_at(const Policy& policy, const ShadowState& state, const Decision& decision) {
  const Reason& reason = decision.reason;
  for (std::size_t i = 0; i < policy.thresholds.size(); ++i) {
    const Threshold& threshold = policy.thresholds[i];
    if (threshold.signal != reason.signal || threshold.hard() != reason.hard) continue;
    const Instant first = state.first_observed[i].value_or(state.next_kubelet_sync);
    return std::max(sync_at_or_after(state.next_kubelet_sync, first + threshold.grace),
                    state.next_kubelet_sync);
  }
  return state.next_kubelet_sync;
}

bool decided_now(const Verdict& verdict, CgroupId cgroup) {
  return std::any_of(verdict.decisions.begin(), verdict.decisions.end(),
                     [&](const Decision& decision) {
                       return chosen_by_rank(decision) && decision.cgroup == cgroup;
                     });
}

// Chosen at an earlier turn.
bool is_leaving(const Verdict& verdict, CgroupId cgroup) {
  return !decided_now(verdict, cgroup) &&
         std::any_of(verdict.after.victims.begin(), verdict.after.victims.end(),
                     [&](const Victim& victim) { return victim.cgroup == cgroup; });
}

bool chosen_before(const std::vector<KubeletPrediction>& syncs, const Pod& pod) {
  return std::any_of(syncs.begin(), syncs.end(), [&](const KubeletPrediction& prediction) {
    return prediction.choice.get() == &pod;
  });
}

// By usage; a pod whose usage is unknown goes first, without evidence.
std::shared_ptr<const Pod> choice_of(const Snapshot& snapshot, const Verdict& verdict,
                                     Signal signal, const ShadowState& state,
                                     const std::vector<KubeletPrediction>& syncs,
                                     CgroupId& cgroup) {
  const PodReading* first = nullptr;
  Candidate best;
  for (std::uint32_t i = 0; i < snapshot.pods.size(); ++i) {
    const PodReading& reading = snapshot.pods[i];
    if (reading.critical || chosen_before(syncs, *reading.pod)) continue;
    if (is_leaving(verdict, reading.cgroup)) continue;
    Candidate candidate = candidate_for(signal, snapshot.images, reading);
    candidate.pod = i;
    if (is_memory(signal)) candidate.usage = sampled(state, reading.cgroup);
    if (first && !evicts_before(signal, candidate, best)) continue;
    first = &reading;
    best = candidate;
  }
  if (!first) return nullptr;
  cgroup = first->cgroup;
  return first->pod;
}

// It evicts one at a look: `looks` are those beside the turn's earlier decisions.
KubeletPrediction predictions(const Policy& policy, const Snapshot& snapshot,
                              const Verdict& verdict, const ShadowState& state, bool syncs_now,
                              const Decision& decision,
                              const std::vector<KubeletPrediction>& syncs) {
  KubeletPrediction prediction;
  prediction.cgroup = decision.cgroup;
  prediction.samples_age = snapshot.at - state.sampled_at;
  if (!syncs_now) prediction.lead = acts_at(policy, state, decision) - decision.decided_at;
  prediction.lead += kKubeletPeriod * static_cast<std::int64_t>(syncs.size());
  CgroupId choice;
  prediction.choice = choice_of(snapshot, verdict, decision.reason.signal, state, syncs, choice);
  prediction.same = prediction.choice && decided_now(verdict, choice);
  return prediction;
}

}  // namespace

void shadow(const Policy& policy, const Snapshot& snapshot, const Verdict& verdict,
            ShadowState& state, ShadowResult& shadow_result) {
  shadow_result.evicts = shadow_result.unneeded = false;
  shadow_result.predictions.clear();
  if (verdict.needs_cgroups) return;
  state.first_observed.resize(policy.thresholds.size());
  const bool syncs = snapshot.at >= state.next_kubelet_sync;
  if (state.next_kubelet_sync == Instant{}) state.next_kubelet_sync = snapshot.at;
  if (syncs) shadow_result.evicts = run_sync(policy, snapshot, verdict, state);
  // It has samples of before it ever looked; of this turn, where we have just begun.
  if (state.sampled_at == Instant{}) take_samples(snapshot, state);
  const bool chosen_by_us =
      std::any_of(verdict.decisions.begin(), verdict.decisions.end(), chosen_by_rank);
  shadow_result.unneeded = shadow_result.evicts && !chosen_by_us && has_pending_eviction(verdict);
  for (const Decision& decision : verdict.decisions)
    if (chosen_by_rank(decision))
      shadow_result.predictions.push_back(predictions(policy, snapshot, verdict, state,
                                                      shadow_result.evicts, decision,
                                                      shadow_result.predictions));
  take_samples(snapshot, state);
}

}  // namespace headroom
