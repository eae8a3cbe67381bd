// SPDX-License-Identifier: Apache-2.0
#include "report/metrics/exposition/cgroup_waits.h"

#include <cstdint>
#include <unordered_map>

namespace headroom::report {
namespace {

template <class Value>
std::vector<const Value*> by_record(const CgroupTable& table, const WaitTable<Value>& waits) {
  std::unordered_map<std::uint64_t, const Value*> known;
  known.reserve(waits.ids.size());
  for (std::size_t i = 0; i < waits.ids.size(); ++i)
    known.emplace(waits.ids[i], &waits.values[i]);
  std::vector<const Value*> found(table.records.size(), nullptr);
  if (known.empty()) return found;
  for (std::size_t i = 0; i < table.records.size(); ++i)
    if (const auto it = known.find(table.records[i].id); it != known.end()) found[i] = it->second;
  return found;
}

}  // namespace

CgroupWaits::CgroupWaits(const CgroupTable& table)
    : stalls_(by_record(table, table.stalls)), throttles_(by_record(table, table.throttles)) {}

}  // namespace headroom::report
