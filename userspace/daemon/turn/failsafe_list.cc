// SPDX-License-Identifier: Apache-2.0
#include "daemon/turn/failsafe_list.h"

#include "base/clock.h"
#include "judge/eviction/selection.h"

#include <utility>

namespace headroom::daemon {
namespace {

// The hard threshold of memory.available in bytes; absent: there is none, or it is not known.
std::optional<std::int64_t> hard_limit(const Policy& policy, const Verdict& verdict) {
  for (const ThresholdReading& reading : verdict.thresholds) {
    const Threshold& threshold = policy.thresholds[reading.index];
    if (threshold.signal == Signal::kMemoryAvailable && threshold.hard()) return reading.limit;
  }
  return std::nullopt;
}

}  // namespace

FailsafeList::FailsafeList(Reporter& next, act::HostActuator& actuator,
                           const std::filesystem::path& cgroup_root, OnList on_list)
    : next_(next),
      actuator_(actuator),
      on_list_(std::move(on_list)),
      memory_({.cgroup_root = cgroup_root}),
      sentinel_({.read_memory =
                     [this] {
                       Observations all{};
                       memory_.read_memory(all);
                       return of(all, Signal::kMemoryAvailable);
                     },
                 .now = &observe::now,
                 .reaper = &actuator.reaper()}) {}

void FailsafeList::reconfigure(const Policy& policy) {
  policy_ = policy;
  updated_at_.reset();
  first_.reset();
  // The old list was chosen by the old policy, and the new one may have no hard threshold at all.
  // The next sweep, which follows at once, makes the new list.
  sentinel_.set_failsafe_list(0, {});
}

void FailsafeList::report_turn(const Snapshot& snapshot, const Verdict& verdict,
                               std::span<const Outcome> outcomes) {
  next_.report_turn(snapshot, verdict, outcomes);
  if (!snapshot.cgroups) return;
  if (updated_at_ && snapshot.at - *updated_at_ < kPeriod && !snapshot.cgroups_changed) return;
  const auto limit = hard_limit(policy_, verdict);
  if (!limit) return;
  updated_at_ = snapshot.at;
  const auto list = judge_eviction::rank_for_failsafe(policy_, snapshot, verdict.after, kMax);
  first_ = list.empty() ? nullptr : list.front().pod;
  on_list_(snapshot, list);
  if (policy_.mode == Mode::kEnforce)
    sentinel_.set_failsafe_list(*limit, actuator_.open_failsafe_list(list));
}

}  // namespace headroom::daemon
