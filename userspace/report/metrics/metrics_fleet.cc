// SPDX-License-Identifier: Apache-2.0
// /metrics/fleet: the few series of a node that a fleet is watched by.
#include "report/metrics/metric_family.h"
#include "report/metrics/metrics.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace headroom::report {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;

// A family of which at most one label stays. Samples that then have the same labels are added up.
struct FleetFamily {
  std::string_view name;
  std::string_view label = {};  // "": none stays
  // If there are any, only samples with one of these values of the label.
  std::array<std::string_view, 3> values = {};
  // If it is set, only samples that also have this label.
  std::pair<std::string_view, std::string_view> also = {};
};

constexpr FleetFamily kFleetFamilies[] = {
    {"headroom_signal_available_bytes",
     "signal",
     {"memory.available", "nodefs.available", "imagefs.available"}},
    {"headroom_signal_capacity_bytes",
     "signal",
     {"memory.available", "nodefs.available", "imagefs.available"}},
    {"headroom_threshold_forecast_seconds", "signal", {"memory.available"}, {"kind", "hard"}},
    {"headroom_condition", "condition"},
    {"headroom_node_contention_ratio", "resource"},
    {"headroom_mode", "mode", {"enforce"}},
    {"headroom_victims"},
    {"headroom_evictions_total", "outcome"},
    {"headroom_kernel_oom_kills_total", "scope"},
    {"headroom_cgroups_tracked"},
    {"headroom_loop_stalls_total"},
    {"headroom_sentinel_kills_total"},
    {"headroom_thread_cpu_seconds_total"},
    {"process_resident_memory_bytes"},
    {"headroom_config_last_reload_successful"},
    {"headroom_build_info", "version"},
};

std::string_view value_of(const ClientMetric& metric, std::string_view label) {
  const auto found = std::find_if(metric.label.begin(), metric.label.end(),
                                  [&](const auto& each) { return each.name == label; });
  return found == metric.label.end() ? std::string_view() : found->value;
}

bool is_kept(const FleetFamily& family, const ClientMetric& metric) {
  if (!family.also.first.empty() && value_of(metric, family.also.first) != family.also.second)
    return false;
  if (family.values.front().empty()) return true;
  const std::string_view value = value_of(metric, family.label);
  return std::find(family.values.begin(), family.values.end(), value) != family.values.end();
}

void add_sample(const FleetFamily& family, const ClientMetric& metric, MetricFamily& to) {
  Labels kept;
  if (!family.label.empty()) kept = labels({{family.label, value_of(metric, family.label)}});
  const auto same = std::find_if(to.metric.begin(), to.metric.end(),
                                 [&](const ClientMetric& each) { return each.label == kept; });
  if (same == to.metric.end()) {
    ClientMetric& fresh = to.metric.emplace_back(metric);
    fresh.label = std::move(kept);
    return;
  }
  same->gauge.value += metric.gauge.value;
  same->counter.value += metric.counter.value;
}

}  // namespace

Families fleet_families(const Families& all) {
  Families fleet;
  std::size_t count = 0;
  for (const FleetFamily& family : kFleetFamilies) {
    const auto found = std::find_if(
        all.begin(), all.end(), [&](const MetricFamily& each) { return each.name == family.name; });
    if (found == all.end()) continue;
    MetricFamily few;
    few.name = found->name;
    few.help = found->help;
    few.type = found->type;
    for (const ClientMetric& metric : found->metric)
      if (is_kept(family, metric)) add_sample(family, metric, few);
    if (few.metric.size() > kMaxFleetSeries - count) few.metric.resize(kMaxFleetSeries - count);
    count += few.metric.size();
    if (!few.metric.empty()) fleet.push_back(std::move(few));
  }
  return fleet;
}

}  // namespace headroom::report
