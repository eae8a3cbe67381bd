// SPDX-License-Identifier: Apache-2.0
#include "report/page/top_waiters.h"

#include <string>
#include <utility>

#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

std::string cause_name(std::size_t cause) {
  return cause < HR_STALL_CAUSES ? std::string(kStallCauseNames[cause]) : "throttled";
}

}  // namespace

void TopWaiters::update(const IndexedCgroupTable& cgroups) {
  const CgroupTable& table = cgroups.table;
  if (table.at == at_) return;
  std::unordered_map<std::uint64_t, Totals> now;
  top_ = {};
  for (const PodRow& row : table.pods) {
    const hr_stalls* stalls = cgroups.waits.stalls(row.cgroup);
    const hr_waits* throttles = cgroups.waits.throttles(row.cgroup);
    if (!stalls && !throttles) continue;
    Totals& totals = now[row.cgroup.value];
    for (std::size_t cause = 0; stalls && cause < HR_STALL_CAUSES; ++cause)
      totals[cause] = stalls->causes[cause].ns;
    if (throttles) totals.back() = throttles->ns;
    compare(row, totals, table.at);
  }
  before_ = std::move(now);
  at_ = table.at;
}

void TopWaiters::compare(const PodRow& row, const Totals& now, Instant at) {
  if (at_ == Instant{}) return;
  const double seconds = std::chrono::duration<double>(at - at_).count();
  const auto found = before_.find(row.cgroup.value);
  const Totals before = found == before_.end() ? Totals{} : found->second;
  for (std::size_t cause = 0; cause < kWaitCauses; ++cause) {
    if (now[cause] <= before[cause]) continue;
    const double rate = static_cast<double>(now[cause] - before[cause]) / seconds;
    if (rate > top_[cause].ns_per_s) top_[cause] = {.pod = row.pod, .ns_per_s = rate};
  }
}

nlohmann::ordered_json TopWaiters::json() const {
  auto json = nlohmann::ordered_json::object();
  for (std::size_t cause = 0; cause < kWaitCauses; ++cause)
    if (const auto& [pod, rate] = top_[cause]; pod)
      json[cause_name(cause)] = {
          {"namespace", pod->pod_namespace}, {"name", pod->name}, {"ns_per_s", rate}};
  return json;
}

}  // namespace headroom::report
