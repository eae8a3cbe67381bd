// SPDX-License-Identifier: Apache-2.0
#include "report/view/view_publisher.h"

#include <algorithm>

namespace headroom::report {
namespace {

bool is_due(const std::optional<Instant>& last, Instant at, bool changed) {
  return changed || !last || at - *last >= ViewPublisher::kPublishPeriod;
}

}  // namespace

void ViewPublisher::publish_cgroups(const Snapshot& snapshot, bool changed) {
  if (!snapshot.cgroups) return;
  cgroups_ = snapshot.cgroups->size();
  swept_at_ = snapshot.at;
  if (!is_due(cgroups_published_at_, snapshot.at, changed)) return;
  cgroups_published_at_ = snapshot.at;
  views_->cgroups.publish(
      [&](CgroupTable& next, const CgroupTable* last) { fill(next, last, snapshot, names_); });
}

bool ViewPublisher::is_node_due(Instant at, bool changed) const {
  return is_due(node_published_at_, at, changed || status_changed_);
}

bool ViewPublisher::publish_node(const Policy& policy, const Snapshot& snapshot,
                                 const Verdict& verdict, const Counters& counters,
                                 const ProcessUsage& usage) {
  status_changed_ = false;
  node_published_at_ = snapshot.at;
  views_->history.add(snapshot);
  bool changed = false;
  views_->node.publish([&](NodeView& next, const NodeView* last) {
    next.at = snapshot.at;
    next.mode = policy.mode;
    next.observations = snapshot.observations;
    next.swap_room = verdict.swap_room;
    next.unaccounted_memory = snapshot.unaccounted_memory;
    fill_thresholds(next.thresholds, policy, verdict);
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
    next.counters = counters;
    next.process_usage = usage;
    next.sources = sources_;
    next.programs = programs_;
    next.waits = node_waits(snapshot.waits);
    next.audit_log.assign(audit_log_.native());
    changed = !last || last->mode != next.mode || last->conditions != next.conditions ||
              last->sources != next.sources;
  });
  return changed;
}

}  // namespace headroom::report
