// SPDX-License-Identifier: Apache-2.0
#include "report/reporter.h"

#include "report/journal.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace headroom::report {
namespace {

bool due(const std::optional<Instant>& last, Instant at, bool news) {
  return news || !last || at - *last >= NodeReporter::kShowEvery;
}

// Sent to processes: the way to it is the kill path.
bool is_signal(const Outcome& outcome) {
  return outcome.decision.act == Act::kKill || outcome.decision.act == Act::kTerminate;
}

}  // namespace

NodeReporter::NodeReporter(ReporterSetup setup)
    : setup_(std::move(setup)),
      policy_(setup_.policy),
      audit_({.file = setup_.audit_log, .qos_of = setup_.qos_of, .wall_time = setup_.wall_time}),
      chronicle_({.audit = &audit_,
                  .names = setup_.names,
                  .qos_of = setup_.qos_of,
                  .minute = setup_.audit_log.empty() ? nullptr : &minute_,
                  .on_evicted = setup_.on_evicted}) {}

void NodeReporter::note(const TickCost& cost) {
  self_.last_tick = cost;
  ++counters_.wakeups[static_cast<std::size_t>(cost.wake)];
  ++counters_.checks[static_cast<std::size_t>(cost.depth)];
  if (cost.depth == Depth::kCgroups) counters_.sweep.observe(cost.look);
}

void NodeReporter::note_status(NodeStatusRef status) {
  status_ = std::move(status);
  status_news_ = true;
}

void NodeReporter::adopt(const Policy& policy) {
  policy_ = policy;
  forecasts_.forget();
}

void NodeReporter::note_shadow(const ShadowSight& sight) {
  shadow_ = &sight;
  if (sight.evicts) ++(sight.unneeded ? counters_.shadow_unneeded : counters_.shadow_needed);
  for (const KubeletWould& would : sight.beside) {
    counters_.shadow_lead.observe(would.lead);
    ++(would.same ? counters_.shadow_same : counters_.shadow_other);
  }
}

void NodeReporter::note_kernel_oom(const KernelOomKill& kill) {
  if (kill.chose()) {
    auto& choices =
        kill.limit_of ? counters_.kernel_oom_kills_of_pods : counters_.kernel_oom_kills_of_node;
    ++choices.kills;
    if (kill.agreed()) ++choices.agreed;
  } else {
    ++counters_.kernel_oom_kills_at_limit;
  }
  log_kernel_oom(kill);
}

void NodeReporter::tell(const Snapshot& snapshot, const Verdict& verdict,
                        std::span<const Outcome> outcomes) {
  // The sweep failed: there is no verdict to show. What was done before is recorded all the same,
  // because an outcome is reported once.
  if (verdict.look_closer && outcomes.empty()) return;
  if (!verdict.look_closer) minute_.note(snapshot, verdict);
  try {
    if (std::any_of(outcomes.begin(), outcomes.end(), is_signal))
      self_.kill_path_allocations = self_.last_tick.kill_path_allocations;
    const bool happened = chronicle_.follow({.policy = policy_,
                                             .snapshot = snapshot,
                                             .verdict = verdict,
                                             .outcomes = outcomes,
                                             .kill_path_allocations = self_.kill_path_allocations,
                                             .shadow = shadow_},
                                            counters_);
    if (verdict.look_closer) return;
    forecasts_.follow(policy_, verdict, snapshot.at, counters_);
    const bool turned = transitions_.follow(policy_, verdict, snapshot.at, counters_);
    // Whoever is gone has no series from now on.
    show_cgroups(snapshot, happened || snapshot.cgroups_changed);
    show_node(snapshot, verdict, happened || turned);
  } catch (const std::exception&) {
    // Out of memory, in all likelihood: then this is no moment to say more than a number.
    ++counters_.reports_failed;
  }
}

void NodeReporter::show_cgroups(const Snapshot& snapshot, bool news) {
  if (!snapshot.cgroups) return;
  cgroups_ = snapshot.cgroups->size();
  swept_at_ = snapshot.at;
  if (!due(cgroups_shown_, snapshot.at, news)) return;
  cgroups_shown_ = snapshot.at;
  setup_.shown->cgroups.publish([&](CgroupTable& next, const CgroupTable* shown) {
    fill(next, shown, snapshot, setup_.names);
  });
}

void NodeReporter::show_node(const Snapshot& snapshot, const Verdict& verdict, bool news) {
  if (!due(node_shown_, snapshot.at, news || status_news_)) return;
  status_news_ = false;
  node_shown_ = snapshot.at;
  meter_.read(self_);
  count_losses();
  setup_.shown->node.publish([&](NodeView& next, const NodeView*) {
    next.at = snapshot.at;
    next.mode = policy_.mode;
    next.observations = snapshot.observations;
    fill_thresholds(next.thresholds, policy_, verdict);
    next.conditions = verdict.conditions;
    next.victims.assign(verdict.after.victims.begin(), verdict.after.victims.end());
    next.held_limits = verdict.after.ladder.held;
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
    next.self = self_;
    next.sources = sources_;
    next.programs = programs_;
    next.waits = node_waits(snapshot.waits);
    next.audit_log.assign(setup_.audit_log.native());
  });
}

void NodeReporter::count_losses() {
  const AuditLog::Tally audit = audit_.tally();
  counters_.audit_lost = audit.lost;
  counters_.minutes_lost = minute_.lost() + audit.minutes_lost;
  counters_.log_lost = log::lost();
  counters_.evictions_overwritten = chronicle_.overwritten();
  counters_.publications_skipped = setup_.shown->node.skipped() + setup_.shown->cgroups.skipped();
}

}  // namespace headroom::report
