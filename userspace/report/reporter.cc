// SPDX-License-Identifier: Apache-2.0
#include "report/reporter.h"

#include "base/log/journal.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace headroom::report {
namespace {

bool due(const std::optional<Instant>& last, Instant at, bool changed) {
  return changed || !last || at - *last >= NodeReporter::kPublishPeriod;
}

// These acts send signals, so allocations before them are on the kill path.
bool is_signal(const Outcome& outcome) {
  return outcome.decision.act == Act::kKill || outcome.decision.act == Act::kTerminate;
}

}  // namespace

NodeReporter::NodeReporter(ReporterSetup setup)
    : setup_(std::move(setup)),
      policy_(setup_.policy),
      audit_({.file = setup_.audit_log, .qos_of = setup_.qos_of, .wall_time = setup_.wall_time}),
      eviction_tracker_({.audit = &audit_,
                         .names = setup_.names,
                         .qos_of = setup_.qos_of,
                         .flight_recording = setup_.audit_log.empty() ? nullptr : &flight_recorder_,
                         .on_evicted = setup_.on_evicted}) {}

void NodeReporter::record(const TurnCost& cost) {
  process_usage_.last_turn = cost;
  ++counters_.wakeups[static_cast<std::size_t>(cost.wake)];
  ++counters_.checks[static_cast<std::size_t>(cost.scope)];
  if (cost.scope == SnapshotScope::kCgroups) counters_.sweep.observe(cost.snapshot);
}

void NodeReporter::set_status(NodeStatusRef status) {
  status_ = std::move(status);
  status_changed_ = true;
}

void NodeReporter::reconfigure(const Policy& policy) {
  policy_ = policy;
  forecast_accuracy_.reset();
}

void NodeReporter::record_shadow(const ShadowResult& shadow_result) {
  shadow_ = &shadow_result;
  if (shadow_result.evicts)
    ++(shadow_result.unneeded ? counters_.shadow_unneeded : counters_.shadow_needed);
  for (const KubeletPrediction& would : shadow_result.predictions) {
    counters_.shadow_lead.observe(would.lead);
    ++(would.same ? counters_.shadow_same : counters_.shadow_other);
  }
}

void NodeReporter::record_kernel_oom(const KernelOomKill& kill) {
  if (kill.had_all_pods()) {
    auto& oom_kills =
        kill.limit_of ? counters_.kernel_oom_kills_of_pods : counters_.kernel_oom_kills_of_node;
    ++oom_kills.kills;
    if (kill.same_choice()) ++oom_kills.same_choice;
  } else {
    ++counters_.kernel_oom_kills_at_limit;
  }
  log_kernel_oom(kill);
}

void NodeReporter::report_turn(const Snapshot& snapshot, const Verdict& verdict,
                               std::span<const Outcome> outcomes) {
  // The sweep failed, so there is no verdict to publish. Outcomes are recorded nevertheless,
  // because each is reported only once.
  if (verdict.needs_cgroups && outcomes.empty()) return;
  if (!verdict.needs_cgroups) flight_recorder_.record(snapshot, verdict);
  try {
    if (std::any_of(outcomes.begin(), outcomes.end(), is_signal))
      process_usage_.kill_path_allocations = process_usage_.last_turn.kill_path_allocations;
    const bool outcome_recorded =
        eviction_tracker_.update({.policy = policy_,
                                  .snapshot = snapshot,
                                  .verdict = verdict,
                                  .outcomes = outcomes,
                                  .kill_path_allocations = process_usage_.kill_path_allocations,
                                  .shadow = shadow_},
                                 counters_);
    if (verdict.needs_cgroups) return;
    forecast_accuracy_.update(policy_, verdict, snapshot.at, counters_);
    const bool condition_changed = transition_log_.update(policy_, verdict, snapshot.at, counters_);
    // Removed cgroups lose their series.
    publish_cgroups(snapshot, outcome_recorded || snapshot.cgroups_changed);
    publish_node(snapshot, verdict, outcome_recorded || condition_changed);
  } catch (const std::exception&) {
    // Most likely out of memory, so only a counter is increased.
    ++counters_.reports_failed;
  }
}

void NodeReporter::publish_cgroups(const Snapshot& snapshot, bool changed) {
  if (!snapshot.cgroups) return;
  cgroups_ = snapshot.cgroups->size();
  swept_at_ = snapshot.at;
  if (!due(cgroups_published_at_, snapshot.at, changed)) return;
  cgroups_published_at_ = snapshot.at;
  setup_.views->cgroups.publish([&](CgroupTable& next, const CgroupTable* views) {
    fill(next, views, snapshot, setup_.names);
  });
}

void NodeReporter::publish_node(const Snapshot& snapshot, const Verdict& verdict, bool changed) {
  if (!due(node_published_at_, snapshot.at, changed || status_changed_)) return;
  status_changed_ = false;
  node_published_at_ = snapshot.at;
  process_usage_meter_.read(process_usage_);
  count_losses();
  setup_.views->node.publish([&](NodeView& next, const NodeView*) {
    next.at = snapshot.at;
    next.mode = policy_.mode;
    next.observations = snapshot.observations;
    fill_thresholds(next.thresholds, policy_, verdict);
    next.conditions = verdict.conditions;
    next.victims.assign(verdict.after.victims.begin(), verdict.after.victims.end());
    next.memory_high_overrides = verdict.after.ladder.held;
    const auto& throttled = verdict.after.ladder.throttled;
    next.throttled = static_cast<std::size_t>(
        std::count_if(throttled.begin(), throttled.end(),
                      [](const Throttled& each) { return each.stalled > each.stalled_before; }));
    next.taint_timers.assign(verdict.after.taint_timers.begin(), verdict.after.taint_timers.end());
    next.status = status_;
    next.slices = slices_;
    next.next_check = verdict.next_check;
    next.cgroups = cgroups_;
    next.swept_at = swept_at_;
    next.counters = counters_;
    next.process_usage = process_usage_;
    next.sources = sources_;
    next.programs = programs_;
    next.waits = node_waits(snapshot.waits);
    next.audit_log.assign(setup_.audit_log.native());
  });
}

void NodeReporter::count_losses() {
  const AuditLog::AuditStats audit = audit_.stats();
  counters_.audit_lost = audit.lost;
  counters_.flight_recordings_lost = flight_recorder_.lost() + audit.flight_recordings_lost;
  counters_.log_lost = log::lost();
  counters_.evictions_overwritten = eviction_tracker_.overwritten();
  counters_.publications_skipped = setup_.views->node.skipped() + setup_.views->cgroups.skipped();
}

}  // namespace headroom::report
