// SPDX-License-Identifier: Apache-2.0
#include "daemon/turn/failsafe_list.h"

#include "base/clock.h"
#include "judge/eviction/selection.h"

namespace headroom::daemon {
namespace {

// The hard threshold of memory.available in bytes; absent: not configured, or not known.
std::optional<std::int64_t> hard_limit(const Policy& policy, const Verdict& verdict) {
  for (const ThresholdReading& reading : verdict.thresholds) {
    const Threshold& threshold = policy.thresholds[reading.index];
    if (threshold.signal == Signal::kMemoryAvailable && threshold.hard()) return reading.limit;
  }
  return std::nullopt;
}

}  // namespace

FailsafeList::FailsafeList(act::HostActuator& actuator, const std::filesystem::path& cgroup_root)
    : actuator_(actuator),
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

std::span<const Decision> FailsafeList::update(const Snapshot& snapshot, const Verdict& verdict) {
  if (!snapshot.cgroups) return {};
  if (updated_at_ && snapshot.at - *updated_at_ < kPeriod && !snapshot.cgroups_changed) return {};
  const auto limit = hard_limit(policy_, verdict);
  if (!limit) return {};
  updated_at_ = snapshot.at;
  list_ = judge_eviction::rank_for_failsafe(policy_, snapshot, verdict.after, kMax);
  first_ = list_.empty() ? nullptr : list_.front().pod;
  if (policy_.mode == Mode::kEnforce)
    sentinel_.set_failsafe_list(*limit, actuator_.open_failsafe_list(list_));
  return list_;
}

}  // namespace headroom::daemon
