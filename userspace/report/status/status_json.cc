// SPDX-License-Identifier: Apache-2.0
#include "report/status/status_json.h"

#include "base/json_text.h"
#include "judge/admission/taints.h"
#include "report/status/status_parts.h"
#include "report/view/pod_index.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

using Json = nlohmann::ordered_json;

Json ns(Instant instant) {
  return instant == Instant{} ? Json(nullptr) : Json(instant.time_since_epoch().count());
}
template <class T>
Json maybe(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
Json maybe(const std::optional<Bytes>& bytes) {
  return bytes ? Json(bytes->count) : Json(nullptr);
}

Json signals_json(const NodeView& node) {
  Json signals = Json::array();
  for (std::size_t i = 0; i < kSignals; ++i)
    if (const auto& seen = node.observations[i])
      signals.push_back({{"signal", kSignalNames[i]},
                         {"available", seen->available},
                         {"capacity", seen->capacity},
                         {"at_ns", ns(seen->at)}});
  return signals;
}

Json threshold_json(const ThresholdView& threshold, Instant at) {
  return {{"signal", name(threshold.signal)},
          {"kind", kind_name(threshold.hard())},
          {"grace_seconds", seconds_of(threshold.grace)},
          {"limit", maybe(threshold.limit)},
          {"available", maybe(threshold.available)},
          {"below_for_seconds",
           threshold.below_since ? Json(seconds_of(at - *threshold.below_since)) : Json(nullptr)},
          {"met", threshold.met},
          {"forecast_seconds", threshold.time_to ? Json(seconds_of(*threshold.time_to)) : nullptr}};
}

Json thresholds_json(const NodeView& node) {
  Json thresholds = Json::array();
  for (const ThresholdView& threshold : node.thresholds)
    thresholds.push_back(threshold_json(threshold, node.at));
  return thresholds;
}

Json conditions_json(const NodeView& node) {
  Json conditions = Json::object();
  for (std::size_t i = 0; i < kConditions; ++i)
    conditions[std::string(kConditionNames[i])] = node.conditions[i];
  return conditions;
}

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
          {"eviction_order", maybe(order)},
          {"working_set", maybe(used)},
          {"request", row.memory_request.count},
          {"over_request", maybe(above)},
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
          {"disk", row.disk ? Json(row.disk->count) : Json(nullptr)},
          {"ignored_fields", pod.ignored_fields}};
}

struct QosGroup {
  std::string_view qos;
  // usage over request, and the pod
  std::vector<std::pair<std::optional<Bytes>, const PodRow*>> pods;
};

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

Json pods_json(const NodeView& node, const IndexedCgroupTable& cgroups,
               const std::vector<QosGroup>& qos_groups, QosOf qos_of,
               std::optional<std::size_t> most) {
  const PodActs acts(node);
  const auto first = most ? top_pods(qos_groups, *most) : std::unordered_set<const PodRow*>();
  const auto order = eviction_order(node, cgroups.table, cgroups.index);
  Json pods = Json::array();
  for (std::size_t i = 0; i < cgroups.table.pods.size(); ++i) {
    const PodRow& row = cgroups.table.pods[i];
    if (!most || first.contains(&row) || acts.phases.contains(row.cgroup.value))
      pods.push_back(pod_json(row, cgroups.index.record_of(row.cgroup), acts, cgroups.waits, qos_of,
                              order[i]));
  }
  return pods;
}

// Taints of the operator and of conditions; null: no status yet.
Json taints_json(const NodeView& node) {
  if (!node.status) return nullptr;
  Json taints = Json::array();
  for (const Taint& taint : node.status->state.taints)
    taints.push_back({{"taint", to_string(taint)}, {"from", "operator"}});
  for (const Taint& taint : condition_taints(node.status->state.conditions))
    taints.push_back({{"taint", to_string(taint)}, {"from", "condition"}});
  return taints;
}

// The pods that taints evict. If the remaining time is zero or less, the toleration has expired.
Json leaving_json(const NodeView& node, const CgroupTable& cgroups) {
  Json leaving = Json::array();
  for (const TaintTimer& timer : node.taint_timers)
    for (const PodRow& row : cgroups.pods)
      if (row.cgroup == timer.cgroup)
        leaving.push_back({{"namespace", row.pod->pod_namespace},
                           {"name", row.pod->name},
                           {"uid", row.pod->uid},
                           {"seconds", seconds_of(timer.due() - node.at)}});
  return leaving;
}

Json resources_json(const ResourceList& list) {
  Json json = Json::object();
  for (const auto& [resource, quantity] : list)
    json[resource] = quantity.canonical();
  return json;
}

Json node_json(const NodeView& node) {
  if (!node.status) return nullptr;
  Json json{{"name", node.status->state.name},
            {"capacity", resources_json(node.status->capacity)},
            {"allocatable", resources_json(node.status->allocatable)},
            {"reserved", resources_json(node.status->reserved)},
            {"requested", resources_json(node.status->requested)},
            {"limits", resources_json(node.status->limits)}};
  if (!node.status->error.empty()) json["error"] = node.status->error;
  return json;
}

Json pod_memory_json(const PodMemoryCounts& counts) {
  return {{"raised_limits", counts.raised_now},
          {"raised_bytes", counts.raised_bytes},
          {"raises", counts.raised},
          {"lowerings", counts.lowered},
          {"lowerings_postponed", counts.postponed},
          {"failed", counts.failed},
          {"background_reclaimed", counts.background_reclaimed},
          {"cold_pushed", counts.cold_pushed},
          {"cold_returned", counts.cold_returned}};
}

Json cpu_burst_json(const CpuBurstCounts& counts) {
  return {{"pods", counts.grants.size()},
          {"cpus", counts.cpus()},
          {"granted", counts.granted},
          {"withdrawn", counts.withdrawn},
          {"failed", counts.failed}};
}

Json cpu_suppress_json(const CpuSuppressCounts& counts) {
  return {{"pods", counts.pods.size()},
          {"suppressed", counts.suppressed},
          {"released", counts.released},
          {"failed", counts.failed}};
}

Json pod_swap_json(const PodSwapCounts& counts) {
  return {{"limited", counts.limited},     {"kept_in_zswap", counts.kept_in_zswap},
          {"throttles", counts.throttles}, {"set", counts.set},
          {"restored", counts.restored},   {"failed", counts.failed}};
}

Json counters_json(const Counters& counters) {
  std::uint64_t evicted = 0, would = 0, failed = 0;
  for (std::size_t i = 0; i < kCauses; ++i) {
    evicted += counters.evicted(i);
    would += counters.would_evict(i);
    failed += counters.evictions[i][static_cast<std::size_t>(Outcome::Result::kFailed)];
  }
  const auto taint = [&](Outcome::Result result) {
    return counters.taint_evictions[static_cast<std::size_t>(result)];
  };
  const auto stuck = [&](Outcome::Result result) {
    return counters.stuck_evictions[static_cast<std::size_t>(result)];
  };
  evicted += taint(Outcome::Result::kDone) + stuck(Outcome::Result::kDone);
  would += taint(Outcome::Result::kDryRun) + stuck(Outcome::Result::kDryRun);
  failed += taint(Outcome::Result::kFailed) + stuck(Outcome::Result::kFailed);
  std::uint64_t parts = 0;
  for (const auto& of_unit : counters.part_kills)
    parts += of_unit[static_cast<std::size_t>(Outcome::Result::kDone)];
  return {{"evicted", evicted},
          {"partial_evictions", parts},
          {"would_evict", would},
          {"failed", failed},
          {"memory_returned", counters.memory_returned},
          {"snapshots", {{"node", counters.checks[0]}, {"cgroups", counters.checks[1]}}},
          {"kernel_oom_kills",
           {{"limit", counters.kernel_oom_kills_at_limit},
            {"pods", counters.kernel_oom_kills_of_pods.kills},
            {"node", counters.kernel_oom_kills_of_node.kills},
            {"same_choice", counters.kernel_oom_kills_of_pods.same_choice +
                                counters.kernel_oom_kills_of_node.same_choice}}},
          {"pod_memory", pod_memory_json(counters.pod_memory)},
          {"cpu_burst", cpu_burst_json(counters.cpu_burst)},
          {"cpu_suppress", cpu_suppress_json(counters.cpu_suppress)},
          {"pod_swap", pod_swap_json(counters.pod_swap)},
          {"missing_readings", counters.missing_readings},
          {"audit_lost", counters.audit_lost},
          {"log_lost", counters.log_lost}};
}

// The mean error over all forecasts of a signal, for signals whose crossing was predicted.
Json forecasts_json(const Counters& counters) {
  Json json = Json::object();
  for (std::size_t i = 0; i < kSignals; ++i) {
    const LatencyHistogram& error = counters.forecast_error[i];
    if (const std::uint64_t count = error.count(); count > 0)
      json[std::string(kSignalNames[i])] = {
          {"mean_error_seconds", error.sum / static_cast<double>(count)},
          {"forecasts", count},
          {"unpredicted", counters.unpredicted_crossings[i]}};
  }
  return json;
}

// The steps of the ladder, and the memory.high values that it overrides.
Json ladder_json(const NodeView& node) {
  Json steps = Json::object();
  for (std::size_t i = 0; i < kLadderSteps; ++i)
    steps[std::string(kLadderStepNames[i])] =
        node.counters.ladder[i][static_cast<std::size_t>(LadderOutcome::kStarted)];
  Json held = Json::array();
  for (const MemoryHighOverride& each : node.memory_high_overrides)
    held.push_back({{"pod", each.pod->pod_namespace + "/" + each.pod->name},
                    {"cgroup", (each.part.whole() ? each.cgroup : each.part.cgroup).value},
                    {"step", each.relaxed ? "relax" : "squeeze"},
                    {"original", maybe(each.found)},
                    {"current", each.set.count},
                    {"until_ns", ns(each.until)}});
  return {{"steps", std::move(steps)}, {"held", std::move(held)}, {"throttled", node.throttled}};
}

Json process_json(const NodeView& node) {
  return {{"cpu_seconds",
           node.process_usage.cpu ? Json(seconds_of(*node.process_usage.cpu)) : Json(nullptr)},
          {"resident_bytes", maybe(node.process_usage.resident)},
          {"turn_allocations", node.process_usage.last_turn.allocations},
          {"kill_path_allocations", node.process_usage.kill_path_allocations},
          {"real_time", node.process_usage.real_time}};
}

Json sources_json(const Sources& sources) {
  Json json = Json::object();
  for (std::size_t i = 0; i < sources.size(); ++i)
    if (!sources[i].empty()) json[std::string(kGroupNames[i])] = sources[i];
  return json;
}

}  // namespace

Json status_json(const NodeView& node, const CgroupTable& cgroups, QosOf qos_of,
                 std::optional<std::size_t> most) {
  return status_json(node, IndexedCgroupTable(cgroups), qos_of, most);
}

Json status_json(const NodeView& node, const IndexedCgroupTable& cgroups, QosOf qos_of,
                 std::optional<std::size_t> most) {
  const std::vector<QosGroup> qos_groups = qos_groups_of(cgroups, qos_of);
  return {{"version", HEADROOM_VERSION},
          {"mode", name(node.mode)},
          {"at_ns", ns(node.at)},
          {"signals", signals_json(node)},
          {"swap", swap_json(node.swap_room)},
          {"thresholds", thresholds_json(node)},
          {"conditions", conditions_json(node)},
          {"taints", taints_json(node)},
          {"taint_evictions", leaving_json(node, cgroups.table)},
          {"node", node_json(node)},
          {"slices", node.slices ? slices_json(*node.slices) : Json(nullptr)},
          {"cgroups", node.cgroups},
          {"pods_at_ns", ns(cgroups.table.at)},
          {"qos_classes", qos_groups_json(qos_groups)},
          {"pods", pods_json(node, cgroups, qos_groups, qos_of, most)},
          {"counters", counters_json(node.counters)},
          {"ladder", ladder_json(node)},
          {"forecasts", forecasts_json(node.counters)},
          {"process", process_json(node)},
          {"waits", node_waits_json(node.waits, cgroups.table)},
          {"sources", sources_json(node.sources)},
          {"programs", programs_json(node.programs)},
          {"audit_log", node.audit_log}};
}

std::string status_text(const PublishedViews& views, QosOf qos_of,
                        const std::filesystem::path& kubernetes) {
  const auto node = views.node.latest();
  if (!node) return "{}";
  const auto cgroups = views.cgroups.latest();
  const CgroupTable none;
  Json status = status_json(*node, cgroups ? *cgroups : none, qos_of);
  const auto forecasts = views.memory_forecasts.latest();
  status["memory_forecasts"] =
      memory_forecasts_json(forecasts ? *forecasts : PeakForecast::Records{});
  status["kubernetes"] = kubernetes_json(kubernetes);
  return to_json_text(status);
}

}  // namespace headroom::report
