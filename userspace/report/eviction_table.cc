// SPDX-License-Identifier: Apache-2.0
#include "report/eviction_table.h"

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
  for (Unfolding& record : records_)
    record.eviction.ranking.reserve(kUsualPods);
}

Unfolding* EvictionTable::find(CgroupId cgroup, const Part& part) {
  const auto it = std::find_if(records_.begin(), records_.end(), [&](const Unfolding& record) {
    return record.cgroup == cgroup && record.part.is(part);
  });
  return it == records_.end() ? nullptr : &*it;
}

Unfolding& EvictionTable::open(CgroupId cgroup, const Part& part, Instant at) {
  Unfolding* record = find(kFree);
  if (!record) {
    record = &*std::min_element(
        records_.begin(), records_.end(),
        [](const Unfolding& a, const Unfolding& b) { return a.last_seen < b.last_seen; });
    if (record->told == Ending::kOpen) ++overwritten_;
  }
  close(*record);
  record->cgroup = cgroup;
  record->part = part;
  record->last_seen = at;
  return *record;
}

void EvictionTable::close(Unfolding& unfolding) {
  reset(unfolding.eviction);
  unfolding.cgroup = kFree;
  unfolding.part = {};
  unfolding.told = Ending::kOpen;
  unfolding.told_error = 0;
  unfolding.last_seen = Instant{};
}

void EvictionTable::forget_told(Instant at, Duration quiet) {
  for (Unfolding& record : records_)
    if (record.cgroup != kFree && record.told != Ending::kOpen && at - record.last_seen >= quiet)
      close(record);
}

}  // namespace headroom::report
