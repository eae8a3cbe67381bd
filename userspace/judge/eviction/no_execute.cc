// SPDX-License-Identifier: Apache-2.0
#include "judge/eviction/no_execute.h"

#include "judge/admission/taints.h"
#include "judge/eviction/selection.h"
#include "judge/eviction/victims.h"

#include <algorithm>

namespace headroom {
namespace {

using Kind = TolerationTime::Kind;

const TaintTimer* timer_of(const std::vector<TaintTimer>& timers, CgroupId cgroup) {
  const auto it = std::find_if(timers.begin(), timers.end(),
                               [&](const TaintTimer& timer) { return timer.cgroup == cgroup; });
  return it == timers.end() ? nullptr : &*it;
}

bool any_no_execute(const Policy& policy) {
  return std::any_of(policy.taints.begin(), policy.taints.end(),
                     [](const auto& taint) { return taint->effect == TaintEffect::kNoExecute; });
}

// With the pod's own grace period, as for any pod that is deleted.
Decision make_taint_eviction(const PodReading& reading, const TaintRef& taint, Instant since,
                             Instant at) {
  constexpr std::chrono::seconds kDefaultGrace{30};
  const Duration grace = reading.pod->termination_grace.value_or(kDefaultGrace);
  const Act act = judge_eviction::first_act(*reading.pod, grace);
  Reason reason;
  reason.cause = Cause::kTaint;
  reason.hard = false;  // a hard threshold need not wait for this grace
  reason.sampled_at = at;
  reason.first_crossed = since;
  reason.taint = taint;
  RankInfo rank_info;
  if (reading.record) rank_info.working_set = working_set(*reading.record);
  rank_info.memory_request = reading.memory_request;
  return Decision{
      .act = act,
      .pod = reading.pod,
      .cgroup = reading.cgroup,
      .reason = std::move(reason),
      .rank_info = rank_info,
      .decided_at = at,
      .deadline = at + (act == Act::kKill ? judge_eviction::return_window(Signal::kMemoryAvailable,
                                                                          rank_info.working_set)
                                          : grace)};
}

// Nothing to evict: the pod has ended, or no process has started yet.
bool empty(const PodReading& reading) {
  return reading.record && reading.record->populated == 0;
}

}  // namespace

bool is_evictable_by_taint(const Pod& pod) {
  return pod.source == PodSource::kManifest && !pod.is_static;
}

bool is_evicted_by_taint(const Policy& policy, const Pod& pod, CgroupId cgroup,
                         const History& history, Instant at) {
  if (!is_evictable_by_taint(pod)) return false;
  const TolerationTime left = toleration_time(pod, policy.taints);
  if (left.kind != Kind::kFinite) return left.kind == Kind::kNone;
  const TaintTimer* timer = timer_of(history.taint_timers, cgroup);
  return timer && timer->due() <= at;
}

void apply_taints(const Policy& policy, const Snapshot& snapshot, const History& before,
                  Verdict& verdict) {
  auto& timers = verdict.after.taint_timers;
  timers.clear();
  verdict.after.taints_checked_at = snapshot.at;
  if (!any_no_execute(policy)) return;  // the last of them gone, every timer is cancelled
  for (const PodReading& reading : snapshot.pods) {
    if (!is_evictable_by_taint(*reading.pod)) continue;
    TolerationTime left = toleration_time(*reading.pod, policy.taints);
    if (left.kind == Kind::kForever) continue;  // cancels its timer
    Instant since = snapshot.at;
    if (left.kind == Kind::kFinite) {
      // One that runs keeps its start and length whatever the taints and the pod say by now.
      const TaintTimer* running = timer_of(before.taint_timers, reading.cgroup);
      timers.push_back(running ? *running : TaintTimer{reading.cgroup, snapshot.at, left.length});
      if (snapshot.at < timers.back().due()) continue;
      since = timers.back().started;
    }
    if (!empty(reading) && !judge_eviction::is_excluded(verdict.after, reading, snapshot.at))
      verdict.decisions.push_back(make_taint_eviction(reading, left.taint, since, snapshot.at));
  }
}

bool taint_timer_due(const History& before, Instant at) {
  return std::any_of(before.taint_timers.begin(), before.taint_timers.end(),
                     [&](const TaintTimer& timer) {
                       return timer.due() <= at && timer.due() > before.taints_checked_at;
                     });
}

std::optional<Instant> next_taint_timer(const History& history, Instant at) {
  std::optional<Instant> next;
  for (const TaintTimer& timer : history.taint_timers)
    if (timer.due() > at && (!next || timer.due() < *next)) next = timer.due();
  return next;
}

}  // namespace headroom
