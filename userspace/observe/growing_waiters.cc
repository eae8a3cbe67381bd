// SPDX-License-Identifier: Apache-2.0
#include "observe/growing_waiters.h"

#include <headroom/snapshot.h>

#include <chrono>
#include <cstddef>
#include <utility>

namespace headroom::observe {
namespace {

std::int64_t size_of(const hr_record* record) {
  const auto held = record ? memory_and_swap(*record) : std::nullopt;
  return held ? held->count : -1;
}

}  // namespace

std::uint64_t node_wide(const hr_stalls& stalls) {
  std::uint64_t ns = 0;
  for (const hr_stall_cause cause : kNodeWideCauses)
    ns += stalls.causes[cause].ns;
  return ns;
}

bool GrowingWaiters::update(Instant at, const ByCgroup<hr_stalls>& stalls,
                            const RecordOf& record_of) {
  if (at - at_ < kMinPeriod) return false;
  period_ = at - std::exchange(at_, at);
  const double seconds = seconds_of(period_);
  waits_.clear();
  std::swap(seen_, before_);
  seen_.clear();
  std::uint64_t of_all = 0, of_growing = 0;
  for (std::size_t i = 0; i < stalls.ids.size(); ++i) {
    const Seen now{.ns = node_wide(stalls.values[i]),
                   .size = size_of(record_of(CgroupId{stalls.ids[i]}))};
    seen_.emplace(stalls.ids[i], now);
    const auto before = before_.find(stalls.ids[i]);
    if (before == before_.end() || now.ns <= before->second.ns) continue;
    const std::uint64_t waited = now.ns - before->second.ns;
    of_all += waited;
    const bool known = now.size >= 0 && before->second.size >= 0;
    if (known && static_cast<double>(now.size - before->second.size) >
                     seconds * static_cast<double>(kGrowth))
      of_growing += waited;
    waits_.push_back({.cgroup = CgroupId{stalls.ids[i]}, .ns = waited});
  }
  share_ = of_all > 0 ? static_cast<double>(of_growing) / static_cast<double>(of_all) : 0;
  return true;
}

}  // namespace headroom::observe
