// SPDX-License-Identifier: Apache-2.0
#include "report/status/status_pods.h"

#include "base/json_text.h"
#include "base/json_values.h"
#include "report/status/status_parts.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

using Json = nlohmann::ordered_json;

std::string_view phase_name(Victim::Phase phase) {
  switch (phase) {
    case Victim::Phase::kTerminating:
      return "terminating";
    case Victim::Phase::kKilled:
      return "killed";
    case Victim::Phase::kTimedOut:
      return "timed_out";
    case Victim::Phase::kPreStop:
      return "pre_stop";
    case Victim::Phase::kRemoving:
      return "removing";
    case Victim::Phase::kDryRun:
      return "would_evict";
  }
  return "";
}

// A field of a record: null unless its group was read.
class Readings {
 public:
  explicit Readings(const hr_record* record) : record_(record) {}
  Json operator()(hr_u32 group, hr_u64 hr_record::*field) const {
    return known(group) ? value(record_->*field) : Json(nullptr);
  }
  Json psi(hr_psi_resource resource, hr_psi_kind kind) const {
    return known(HR_PSI) ? value(record_->psi_ns[resource][kind]) : Json(nullptr);
  }

 private:
  bool known(hr_u32 group) const { return record_ && (record_->valid & group); }
  static Json value(hr_u64 value) {
    return value == HR_UNKNOWN || value == HR_NO_LIMIT ? Json(nullptr) : Json(value);
  }
  const hr_record* record_;
};

// What is being done to pods, by their cgroups.
struct PodActs {
  explicit PodActs(const NodeView& node) {
    for (const Victim& victim : node.victims)
      if (victim.part.whole()) phases.emplace(victim.cgroup.value, victim.phase);
    for (const CpuBurstCounts::Grant& grant : node.counters.cpu_burst.grants)
      bursts.emplace(grant.pod.value, grant.cpus);
    for (const CgroupId pod : node.counters.cpu_suppress.pods)
      suppressed.insert(pod.value);
  }
  double burst(CgroupId pod) const {
    const auto found = bursts.find(pod.value);
    return found == bursts.end() ? 0 : found->second;
  }

  std::unordered_map<std::uint64_t, Victim::Phase> phases;
  std::unordered_map<std::uint64_t, double> bursts;  // CPUs
  std::unordered_set<std::uint64_t> suppressed;      // their CPU time
};

std::string_view state_of(const PodRow& row, const hr_record* record, const PodActs& acts) {
  const auto victim_phase = acts.phases.find(row.cgroup.value);
  if (victim_phase != acts.phases.end()) return phase_name(victim_phase->second);
  if (!record) return "unknown";
  if (record->populated == 0) return "empty";
  return row.critical ? "critical" : "running";
}

// A pod's usage above its request; absent: unknown.
std::optional<Bytes> over(const PodRow& row, const hr_record* record) {
  const auto used = record ? working_set(*record) : std::nullopt;
  if (!used) return std::nullopt;
  return *used - row.memory_request;
}

// Empty: it never waited for memory; null: unknown.
Json stalls_of(const PodWaits& waits, CgroupId pod) {
  if (const hr_stalls* stalls = waits.stalls(pod)) return stalls_json(*stalls);
  return waits.knows_all_stalls() ? Json::object() : Json(nullptr);
}

Json pod_json(const PodRow& row, const hr_record* record, const PodActs& acts,
              const PodWaits& waits, QosOf qos_of, const std::optional<std::uint32_t>& order) {
  const Pod& pod = *row.pod;
  const auto used = record ? working_set(*record) : std::nullopt;
  const auto above = over(row, record);
  const Readings read(record);
  const hr_waits* throttles = waits.throttles(row.cgroup);
  return {{"namespace", pod.pod_namespace},
          {"name", pod.name},
          {"uid", pod.uid},
          {"qos", qos_name(pod, qos_of)},
          {"priority", pod.priority},
          {"state", state_of(row, record, acts)},
          {"cgroup", row.cgroup.value},
          {"eviction_order", or_null(order)},
          {"working_set", or_null(used)},
          {"request", row.memory_request.count},
          {"over_request", or_null(above)},
          {"limit", read(HR_MEMORY_LIMITS, &hr_record::memory_max)},
          {"swap", read(HR_MEMORY_USAGE, &hr_record::swap_usage)},
          {"oom_kills", read(HR_MEMORY_EVENTS, &hr_record::events_oom_kill)},
          {"cpu_ns", read(HR_CPU, &hr_record::cpu_usage_ns)},
          {"throttled_ns", read(HR_THROTTLE, &hr_record::throttled_ns)},
          {"memory_waiting_ns", read.psi(HR_PSI_MEMORY, HR_PSI_SOME)},
          {"stalls", stalls_of(waits, row.cgroup)},
          {"throttle_waits", throttles ? waits_json(*throttles) : Json(nullptr)},
          {"cpu_waits", cpu_waits_json(waits.cpu(row.cgroup))},
          {"cpu_burst", acts.burst(row.cgroup)},
          {"cpu_suppressed", acts.suppressed.contains(row.cgroup.value)},
          {"tasks", read(HR_PIDS, &hr_record::pids_current)},
          {"disk", or_null(row.disk)},
          {"ignored_fields", pod.ignored_fields}};
}

std::unordered_set<const PodRow*> top_pods(std::vector<QosGroup> qos_groups, std::size_t most) {
  std::unordered_set<const PodRow*> rows;
  for (QosGroup& each : qos_groups) {
    const std::size_t kept = std::min(most, each.pods.size());
    std::partial_sort(each.pods.begin(), each.pods.begin() + static_cast<std::ptrdiff_t>(kept),
                      each.pods.end(),
                      [](const auto& a, const auto& b) { return a.first > b.first; });
    for (std::size_t i = 0; i < kept; ++i)
      rows.insert(each.pods[i].second);
  }
  return rows;
}

}  // namespace

std::vector<QosGroup> qos_groups_of(const IndexedCgroupTable& cgroups, QosOf qos_of) {
  std::vector<QosGroup> qos_groups;
  for (const PodRow& row : cgroups.table.pods) {
    const std::string_view qos = qos_name(*row.pod, qos_of);
    auto found = std::find_if(qos_groups.begin(), qos_groups.end(),
                              [&](const QosGroup& each) { return each.qos == qos; });
    if (found == qos_groups.end()) found = qos_groups.insert(found, {.qos = qos, .pods = {}});
    found->pods.emplace_back(over(row, cgroups.index.record_of(row.cgroup)), &row);
  }
  return qos_groups;
}

Json qos_groups_json(const std::vector<QosGroup>& qos_groups) {
  Json json = Json::array();
  for (const QosGroup& each : qos_groups) {
    std::int64_t above = 0;
    for (const auto& [bytes, row] : each.pods)
      above += std::max<std::int64_t>(0, bytes.value_or(Bytes{}).count);
    json.push_back({{"qos", each.qos}, {"pods", each.pods.size()}, {"over_request", above}});
  }
  return json;
}

void append_pods(std::string& text, const NodeView& node, const IndexedCgroupTable& cgroups,
                 const std::vector<QosGroup>& qos_groups, QosOf qos_of,
                 std::optional<std::size_t> most) {
  const PodActs acts(node);
  const auto first = most ? top_pods(qos_groups, *most) : std::unordered_set<const PodRow*>();
  const auto order = eviction_order(node, cgroups.table, cgroups.index);
  std::string_view separator = "[";
  for (std::size_t i = 0; i < cgroups.table.pods.size(); ++i) {
    const PodRow& row = cgroups.table.pods[i];
    if (most && !first.contains(&row) && !acts.phases.contains(row.cgroup.value)) continue;
    text += separator;
    text += to_json_text(
        pod_json(row, cgroups.index.record_of(row.cgroup), acts, cgroups.waits, qos_of, order[i]));
    separator = ",";
  }
  text += separator == "[" ? "[]" : "]";
}

}  // namespace headroom::report
