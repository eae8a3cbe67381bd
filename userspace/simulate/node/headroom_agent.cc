// SPDX-License-Identifier: Apache-2.0
#include "simulate/node/headroom_agent.h"

#include "judge/eviction/threshold/threshold.h"
#include "simulate/workload/random.h"

#include <headroom/cgroup_record.h>

#include <algorithm>
#include <utility>

namespace headroom::simulate {
namespace {

hr_u64 count_of(double bytes) {
  return static_cast<hr_u64>(std::max(bytes, 0.0));
}

// All that the judge reads of a pod without swap.
hr_record record_of(const SimulatedPod& pod, Instant at) {
  hr_record record = unknown_record(pod.cgroup.value, 1);
  record.valid = HR_MEMORY_USAGE | HR_MEMORY_STAT | HR_MEMORY_LIMITS;
  record.populated = pod.uses_memory() ? 1 : 0;
  const double level = pod.uses_memory() ? pod.level_at(at) : 0;
  record.memory_usage = count_of(level);
  record.swap_usage = record.swapcached = 0;
  record.anon = count_of(level * (1 - pod.cache_share));
  record.file = record.active_file = record.memory_usage - record.anon;
  record.inactive_file = record.shmem = record.kernel_stack = record.pagetables = 0;
  record.slab_reclaimable = record.anon_thp = record.shmem_thp = 0;
  record.memory_min = record.memory_low = 0;
  record.memory_high = pod.high ? count_of(*pod.high) : HR_NO_LIMIT;
  record.memory_max =
      pod.plan.memory_limit ? static_cast<hr_u64>(pod.plan.memory_limit->count) : HR_NO_LIMIT;
  return record;
}

}  // namespace

HeadroomAgent::HeadroomAgent(std::shared_ptr<const Policy> policy, std::string* recording,
                             bool every_check)
    : policy_(std::move(policy)),
      every_check_(every_check),
      is_attentive_(every_check),
      recording_(recording) {
  if (!recording_) return;
  recording::TapeWriter::header(*recording_, {HEADROOM_VERSION, 0});
  tape_.baseline(*recording_, Instant{}, *policy_, history_, 0);
}

// Else the looks before a crossing, which are check_floor apart, would always hit it exactly.
void HeadroomAgent::draw_approach() {
  Random random(static_cast<std::uint64_t>(planned_.time_since_epoch().count()));
  const auto floor = static_cast<double>(policy_->check_floor.count());
  approach_ = kApproach + Duration(static_cast<std::int64_t>(random.uniform() * floor));
}

// That the judge advances with time.
bool HeadroomAgent::has_work_under_way() const {
  const LadderHistory& ladder = history_.ladder;
  return !history_.victims.empty() || !history_.taint_timers.empty() || !started_.empty() ||
         !ladder.held.empty() || ladder.taking != Instant{} ||
         std::any_of(history_.thresholds.begin(), history_.thresholds.end(),
                     [](const ThresholdHistory& each) { return each.first_observed.has_value(); });
}

Instant HeadroomAgent::time_of_crossing(const Node& node) const {
  Instant soonest = kNever;
  const std::int64_t capacity = node.shape().capacity.count;
  const float margin =
      std::max(policy_->ladder.reclaim_margin, policy_->ladder.lower_high_margin).value_or(0);
  for (const Threshold& threshold : policy_->thresholds) {
    if (threshold.signal == Signal::kMemoryAvailable) {
      const double ladder = static_cast<double>(margin) * static_cast<double>(capacity);
      const auto limit = static_cast<double>(resolve(threshold.value, capacity));
      soonest = std::min(soonest, node.time_below(limit + ladder));
    }
    if (threshold.signal == Signal::kAllocatableMemoryAvailable) {
      const std::int64_t limit = resolve(threshold.value, node.shape().allocatable.count);
      soonest = std::min(soonest, node.time_allocatable_below(static_cast<double>(limit)));
    }
  }
  return soonest;
}

Instant HeadroomAgent::next_look(const Node& node) const {
  if (is_attentive_) return planned_;
  const Instant crossing = time_of_crossing(node);
  if (crossing == kNever) return kNever;
  if (crossing - approach_ > node.now()) return crossing - approach_;
  return std::max(planned_, node.now());
}

Snapshot HeadroomAgent::node_snapshot(const Node& node) const {
  Snapshot snapshot;
  snapshot.at = node.now();
  of(snapshot.observations, Signal::kMemoryAvailable) =
      Observation{.available = node.memory_available(node.now()),
                  .capacity = node.shape().capacity.count,
                  .at = node.now()};
  of(snapshot.observations, Signal::kAllocatableMemoryAvailable) =
      Observation{.available = node.allocatable_available(node.now()),
                  .capacity = node.shape().allocatable.count,
                  .at = node.now()};
  return snapshot;
}

void HeadroomAgent::add_pods(Node& node, Scratch& scratch, Snapshot& snapshot) const {
  scratch.records.clear();
  scratch.readings.clear();
  scratch.records.reserve(node.pods().size());
  for (std::size_t i = 0; i < node.pods().size(); ++i) {
    const SimulatedPod& pod = node.pods()[i];
    const hr_record& record = scratch.records.emplace_back(record_of(pod, node.now()));
    scratch.readings.push_back({.pod = node.description(i),
                                .cgroup = pod.cgroup,
                                .record = &record,
                                .memory_request = pod.plan.memory_request,
                                .storage_is_unlimited = true});
  }
  snapshot.cgroups = scratch.records;
  snapshot.pods = scratch.readings;
}

void HeadroomAgent::look(Node& node, Scratch& scratch) {
  scratch.outcomes.clear();
  for (Outcome& outcome : started_) {
    outcome.at = node.now();
    record_outcome(outcome, history_);
    scratch.outcomes.push_back(std::move(outcome));
  }
  started_.clear();
  Snapshot snapshot = node_snapshot(node);
  Verdict& verdict = scratch.verdict;
  judge(*policy_, snapshot, history_, verdict);
  if (verdict.needs_cgroups || !verdict.decisions.empty()) {
    ++node.totals().sweeps;
    add_pods(node, scratch, snapshot);
    judge(*policy_, snapshot, history_, verdict);
  }
  act(node, scratch);
  if (recording_) tape_.turn(*recording_, snapshot, verdict, scratch.outcomes);
  planned_ = verdict.next_check;
  draw_approach();
  std::swap(history_, verdict.after);
  is_attentive_ = every_check_ || has_work_under_way();
}

void HeadroomAgent::act(Node& node, Scratch& scratch) {
  for (const Decision& decision : scratch.verdict.decisions) {
    scratch.outcomes.push_back(carry_out(node, decision));
    record_outcome(scratch.outcomes.back(), scratch.verdict.after);
  }
}

// What takes time is over at the next look.
Outcome HeadroomAgent::carry_out(Node& node, const Decision& decision) {
  Outcome outcome{.decision = decision, .at = node.now()};
  if (policy_->mode == Mode::kObserve) {
    outcome.result = Outcome::Result::kDryRun;
    return outcome;
  }
  const std::size_t pod = node.find(decision.cgroup);
  if (pod == node.pods().size()) {
    outcome.result = Outcome::Result::kGone;
    return outcome;
  }
  switch (decision.act) {
    case Act::kKill:
      node.evict(pod, Duration::zero());
      return outcome;
    case Act::kTerminate:
      node.evict(pod, decision.deadline - decision.decided_at);
      return outcome;
    case Act::kReclaimCache:
      if (decision.bytes) node.reclaim_cache(pod, static_cast<double>(decision.bytes->count));
      break;
    case Act::kLowerMemoryHigh:
    case Act::kRaiseMemoryHigh:
    case Act::kRestoreMemoryHigh:
      node.set_high(pod, decision.bytes ? std::optional(static_cast<double>(decision.bytes->count))
                                        : std::nullopt);
      break;
    case Act::kPreStop:
    case Act::kRemove:
    case Act::kReclaim:
      break;
  }
  started_.push_back(outcome);
  outcome.result = Outcome::Result::kStarted;
  return outcome;
}

bool HeadroomAgent::has_memory_pressure(Instant at) const {
  const auto& last = history_.last_pressure[static_cast<std::size_t>(Condition::kMemoryPressure)];
  return last && at - *last < policy_->pressure_transition;
}

void HeadroomAgent::end(Instant at) {
  if (recording_) tape_.end(*recording_, at, 0);
}

}  // namespace headroom::simulate
