// SPDX-License-Identifier: Apache-2.0
#include "daemon/standby.h"

#include "judge/eviction/choose.h"
#include "observe/clock.h"

#include <utility>

namespace headroom::daemon {
namespace {

// The hard threshold of memory.available in bytes; absent: there is none, or it is not known.
std::optional<std::int64_t> hard_limit(const Policy& policy, const Verdict& verdict) {
  for (const ThresholdStanding& standing : verdict.thresholds) {
    const Threshold& threshold = policy.thresholds[standing.index];
    if (threshold.signal == Signal::kMemoryAvailable && threshold.hard()) return standing.limit;
  }
  return std::nullopt;
}

}  // namespace

Standby::Standby(Reporter& next, act::HostActuator& actuator,
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
                 .releaser = &actuator.releaser()}) {}

void Standby::adopt(const Policy& policy) {
  policy_ = policy;
  listed_.reset();
  first_.reset();
  // The old list was chosen by the old policy, and the new one may have no hard threshold at all.
  // The next sweep, which follows at once, makes the new list.
  sentinel_.stand_by(0, {});
}

void Standby::tell(const Snapshot& snapshot, const Verdict& verdict,
                   std::span<const Outcome> outcomes) {
  next_.tell(snapshot, verdict, outcomes);
  if (!snapshot.cgroups) return;
  if (listed_ && snapshot.at - *listed_ < kPeriod && !snapshot.cgroups_changed) return;
  const auto limit = hard_limit(policy_, verdict);
  if (!limit) return;
  listed_ = snapshot.at;
  const auto list = judge_eviction::standing_list(policy_, snapshot, verdict.after, kMost);
  first_ = list.empty() ? nullptr : list.front().pod;
  on_list_(snapshot, list);
  if (policy_.mode == Mode::kEnforce) sentinel_.stand_by(*limit, actuator_.stand_by(list));
}

}  // namespace headroom::daemon
