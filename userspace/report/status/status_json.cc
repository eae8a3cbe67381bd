// SPDX-License-Identifier: Apache-2.0
#include "report/status/status_json.h"

#include "base/json_text.h"
#include "base/json_values.h"
#include "judge/admission/taints.h"
#include "report/status/status_parts.h"
#include "report/status/status_pods.h"

#include <optional>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

using Json = nlohmann::ordered_json;

Json signals_json(const NodeView& node) {
  Json signals = Json::array();
  for (std::size_t i = 0; i < kSignals; ++i)
    if (const auto& seen = node.observations[i])
      signals.push_back({{"signal", kSignalNames[i]},
                         {"available", seen->available},
                         {"capacity", seen->capacity},
                         {"at_ns", boot_ns(seen->at)}});
  return signals;
}

Json threshold_json(const ThresholdView& threshold, Instant at) {
  return {{"signal", name(threshold.signal)},
          {"kind", kind_name(threshold.hard())},
          {"grace_seconds", seconds_of(threshold.grace)},
          {"limit", or_null(threshold.limit)},
          {"available", or_null(threshold.available)},
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
                    {"original", or_null(each.found)},
                    {"current", each.set.count},
                    {"until_ns", boot_ns(each.until)}});
  return {{"steps", std::move(steps)}, {"held", std::move(held)}, {"throttled", node.throttled}};
}

Json process_json(const NodeView& node) {
  return {{"cpu_seconds",
           node.process_usage.cpu ? Json(seconds_of(*node.process_usage.cpu)) : Json(nullptr)},
          {"resident_bytes", or_null(node.process_usage.resident)},
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

// Its members in their order, "pods" without a value.
Json without_pods(const NodeView& node, const IndexedCgroupTable& cgroups,
                  const std::vector<QosGroup>& qos_groups) {
  return {{"version", HEADROOM_VERSION},
          {"mode", name(node.mode)},
          {"at_ns", boot_ns(node.at)},
          {"signals", signals_json(node)},
          {"swap", swap_json(node.swap_room)},
          {"thresholds", thresholds_json(node)},
          {"conditions", conditions_json(node)},
          {"taints", taints_json(node)},
          {"taint_evictions", leaving_json(node, cgroups.table)},
          {"node", node_json(node)},
          {"slices", node.slices ? slices_json(*node.slices) : Json(nullptr)},
          {"cgroups", node.cgroups},
          {"pods_at_ns", boot_ns(cgroups.table.at)},
          {"qos_classes", qos_groups_json(qos_groups)},
          {"pods", nullptr},
          {"counters", counters_json(node.counters)},
          {"ladder", ladder_json(node)},
          {"forecasts", forecasts_json(node.counters)},
          {"process", process_json(node)},
          {"waits", node_waits_json(node.waits, cgroups.table)},
          {"sources", sources_json(node.sources)},
          {"programs", programs_json(node.programs)},
          {"audit_log", node.audit_log}};
}

}  // namespace

std::string status_text(const NodeView& node, const IndexedCgroupTable& cgroups, QosOf qos_of,
                        std::optional<std::size_t> most, const Json& more) {
  const std::vector<QosGroup> qos_groups = qos_groups_of(cgroups, qos_of);
  Json status = without_pods(node, cgroups, qos_groups);
  status.update(more);
  std::string text;
  for (const auto& [key, value] : status.items()) {
    text += (text.empty() ? "{\"" : ",\"") + key + "\":";
    if (key == "pods")
      append_pods(text, node, cgroups, qos_groups, qos_of, most);
    else
      text += to_json_text(value);
  }
  return text + '}';
}

std::string status_text(const PublishedViews& views, QosOf qos_of,
                        const std::filesystem::path& kubernetes) {
  const auto node = views.node.latest();
  if (!node) return "{}";
  const auto cgroups = views.cgroups.latest();
  const CgroupTable none;
  const auto forecasts = views.memory_forecasts.latest();
  return status_text(*node, IndexedCgroupTable(cgroups ? *cgroups : none), qos_of, std::nullopt,
                     {{"memory_forecasts",
                       memory_forecasts_json(forecasts ? *forecasts : PeakForecast::Records{})},
                      {"kubernetes", kubernetes_json(kubernetes)}});
}

}  // namespace headroom::report
