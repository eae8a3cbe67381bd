// SPDX-License-Identifier: Apache-2.0
#include "base/human_readable.h"
#include "base/json_text.h"
#include "ctl/simulate/simulate.h"

#include <algorithm>
#include <chrono>

#include <spdlog/fmt/fmt.h>

namespace headroom::ctl {
namespace {

using simulate::FleetResult;
using Json = nlohmann::ordered_json;

double mean_used(const FleetResult& result) {
  double sum = 0;
  for (const simulate::FleetSample& sample : result.samples)
    sum += sample.used;
  return result.samples.empty() ? 0 : sum / static_cast<double>(result.samples.size());
}

std::string latency(const FleetResult& result, double share) {
  const auto at = latency_at(result, share);
  return at ? report::human(*at) : "-";
}

std::string thousands(std::uint64_t count) {
  std::string text = std::to_string(count);
  for (std::size_t i = text.size(); i > 3; i -= 3)
    text.insert(i - 3, 1, ',');
  return text;
}

using Value = std::string (*)(const FleetResult&);
struct Line {
  const char* name;
  Value value;
};

constexpr Line kLines[] = {
    {"pods placed", [](const FleetResult& r) { return thousands(r.placed); }},
    {"pods without a node at the end", [](const FleetResult& r) { return thousands(r.unplaced); }},
    {"memory in use",
     [](const FleetResult& r) { return fmt::format("{:.1f} %", 100 * mean_used(r)); }},
    {"shortages", [](const FleetResult& r) { return thousands(r.totals.shortages); }},
    {"kernel OOM kills", [](const FleetResult& r) { return thousands(r.totals.kernel_ooms); }},
    {"  not first of the ranking",
     [](const FleetResult& r) { return thousands(r.totals.wrong_kernel_victims); }},
    {"evictions", [](const FleetResult& r) { return thousands(r.totals.evictions); }},
    {"  not first of the ranking",
     [](const FleetResult& r) { return thousands(r.totals.wrong_victims); }},
    {"  not needed", [](const FleetResult& r) { return thousands(r.totals.unneeded); }},
    {"victims within their request",
     [](const FleetResult& r) { return thousands(r.totals.within_request); }},
    {"time to decide: median", [](const FleetResult& r) { return latency(r, 0.5); }},
    {"  99 %", [](const FleetResult& r) { return latency(r, 0.99); }},
    {"  longest", [](const FleetResult& r) { return latency(r, 1); }},
    {"time below the threshold",
     [](const FleetResult& r) {
       return report::human(std::chrono::duration_cast<Duration>(
           std::chrono::duration<double>(r.totals.below_threshold)));
     }},
    {"work lost, CPU hours",
     [](const FleetResult& r) { return fmt::format("{:.1f}", r.totals.work_lost / 3600); }},
    {"services down, pod hours",
     [](const FleetResult& r) { return fmt::format("{:.1f}", r.down / 3600); }},
    {"kills at a pod's own limit",
     [](const FleetResult& r) { return thousands(r.totals.own_limit_ooms); }},
};

std::string heading(const SimulatedFleet& fleet) {
  return fmt::format("{} nodes of {} and {} CPUs, {}, {} pods at a time, {}, seed {}\n",
                     thousands(fleet.workload.nodes), report::human(fleet.shape.capacity),
                     fleet.shape.milli_cpu / 1000, report::human(fleet.workload.length),
                     thousands(fleet.workload.nodes * fleet.workload.pods_per_node), fleet.source,
                     fleet.workload.seed);
}

Json optional_seconds(const FleetResult& result, double share) {
  const auto at = latency_at(result, share);
  return at ? Json(seconds_of(*at)) : Json(nullptr);
}

Json result_json(const FleetResult& result) {
  Json samples = Json::array();
  for (const simulate::FleetSample& sample : result.samples)
    samples.push_back({{"seconds", seconds_of(sample.at.time_since_epoch())},
                       {"used_ratio", sample.used},
                       {"nodes_under_pressure", sample.nodes_under_pressure}});
  const simulate::NodeTotals& totals = result.totals;
  return {{"agent", simulate::name(result.agent)},
          {"pods_placed", result.placed},
          {"pods_unplaced", result.unplaced},
          {"waiting_seconds", result.waited},
          {"memory_used_ratio", mean_used(result)},
          {"shortages", totals.shortages},
          {"below_threshold_seconds", totals.below_threshold},
          {"lowest_available_bytes", totals.lowest_available},
          {"kernel_oom_kills", totals.kernel_ooms},
          {"kernel_oom_kills_out_of_order", totals.wrong_kernel_victims},
          {"evictions", totals.evictions},
          {"evictions_out_of_order", totals.wrong_victims},
          {"evictions_unneeded", totals.unneeded},
          {"victims_within_request", totals.within_request},
          {"own_limit_kills", totals.own_limit_ooms},
          {"pods_finished", totals.finished},
          {"work_lost_cpu_seconds", totals.work_lost},
          {"service_down_seconds", result.down},
          {"decisions", totals.latencies.size()},
          {"decision_seconds",
           {{"p50", optional_seconds(result, 0.5)},
            {"p99", optional_seconds(result, 0.99)},
            {"max", optional_seconds(result, 1)}}},
          {"looks", totals.looks},
          {"sweeps", totals.sweeps},
          {"samples", std::move(samples)}};
}

}  // namespace

std::optional<Duration> latency_at(const FleetResult& result, double share) {
  const auto& latencies = result.totals.latencies;
  if (latencies.empty()) return std::nullopt;
  const auto last = static_cast<double>(latencies.size() - 1);
  return latencies[static_cast<std::size_t>(share * last + 0.5)];
}

std::string render_fleet(const SimulatedFleet& fleet, const std::vector<FleetResult>& results,
                         const Screen& screen) {
  std::vector<Row> rows{{{""}}};
  for (const FleetResult& result : results)
    rows.front().push_back({std::string(simulate::name(result.agent)), Colour::kBold});
  for (const Line& line : kLines) {
    Row& row = rows.emplace_back(Row{{line.name}});
    for (const FleetResult& result : results)
      row.push_back({line.value(result)});
  }
  return heading(fleet) + '\n' + table(rows, 1, screen);
}

std::string fleet_json(const SimulatedFleet& fleet, const std::vector<FleetResult>& results) {
  Json agents = Json::array();
  for (const FleetResult& result : results)
    agents.push_back(result_json(result));
  const Json whole{{"nodes", fleet.workload.nodes},
                   {"node_memory_bytes", fleet.shape.capacity.count},
                   {"node_cpus", static_cast<double>(fleet.shape.milli_cpu) / 1000},
                   {"hours", seconds_of(fleet.workload.length) / 3600},
                   {"pods_per_node", fleet.workload.pods_per_node},
                   {"pods", fleet.source},
                   {"seed", fleet.workload.seed},
                   {"agents", std::move(agents)}};
  return to_json_text(whole) + '\n';
}

}  // namespace headroom::ctl
