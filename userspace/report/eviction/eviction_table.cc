// SPDX-License-Identifier: Apache-2.0
#include "report/eviction/eviction_table.h"

#include <algorithm>
#include <utility>

namespace headroom::report {
namespace {

constexpr CgroupId kFree{};

}  // namespace

void reset(Eviction& eviction) {
  Eviction empty;
  empty.path = std::move(eviction.path);
  empty.ranking = std::move(eviction.ranking);
  empty.message = std::move(eviction.message);
  empty.path.clear();
  empty.ranking.clear();
  empty.message.clear();
  eviction = std::move(empty);
}

EvictionTable::EvictionTable() : records_(kRecords) {
  for (TrackedEviction& record : records_)
    record.eviction.ranking.reserve(kTypicalPods);
}

TrackedEviction* EvictionTable::find(CgroupId cgroup, const Part& part) {
  const auto it =
      std::find_if(records_.begin(), records_.end(), [&](const TrackedEviction& record) {
        return record.cgroup == cgroup && record.part.is(part);
      });
  return it == records_.end() ? nullptr : &*it;
}

TrackedEviction& EvictionTable::open(CgroupId cgroup, const Part& part, Instant at) {
  TrackedEviction* record = find(kFree);
  if (!record) {
    record = &*std::min_element(records_.begin(), records_.end(),
                                [](const TrackedEviction& a, const TrackedEviction& b) {
                                  return a.last_seen < b.last_seen;
                                });
    if (record->reported == Ending::kOpen) ++overwritten_;
  }
  close(*record);
  record->cgroup = cgroup;
  record->part = part;
  record->last_seen = at;
  return *record;
}

void EvictionTable::close(TrackedEviction& tracked) {
  reset(tracked.eviction);
  tracked.cgroup = kFree;
  tracked.part = {};
  tracked.reported = Ending::kOpen;
  tracked.reported_error = 0;
  tracked.last_seen = Instant{};
}

void EvictionTable::remove_reported(Instant at, Duration retention) {
  for (TrackedEviction& record : records_)
    if (record.cgroup != kFree && record.reported != Ending::kOpen &&
        at - record.last_seen >= retention)
      close(record);
}

}  // namespace headroom::report
