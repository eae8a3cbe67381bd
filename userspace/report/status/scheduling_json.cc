// SPDX-License-Identifier: Apache-2.0
#include "report/status/scheduling_json.h"

#include "base/json_values.h"
#include "report/view/pod_index.h"

#include <headroom/cgroup_record.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

using Json = nlohmann::ordered_json;

// The share of the latest window that pods lost to the node's shortage.
Json contention_of(const NodeView& node, Signal signal) {
  const auto& seen = node.observations[static_cast<std::size_t>(signal)];
  if (!seen || seen->capacity <= 0) return nullptr;
  return 1 - static_cast<double>(seen->available) / static_cast<double>(seen->capacity);
}

struct HardThresholds {
  std::optional<std::string_view> met;  // the signal's name
  std::optional<double> seconds;        // until the first is crossed
  std::optional<std::int64_t> left;     // bytes of memory
};

HardThresholds hard_thresholds(const NodeView& node) {
  HardThresholds all;
  for (const ThresholdView& threshold : node.thresholds) {
    if (!threshold.hard() || is_share_of_time(threshold.signal)) continue;
    if (threshold.met && !all.met) all.met = name(threshold.signal);
    if (threshold.time_to) {
      const double seconds = seconds_of(*threshold.time_to);
      all.seconds = std::min(all.seconds.value_or(seconds), seconds);
    }
    if (!is_memory(threshold.signal) || !threshold.limit || !threshold.available) continue;
    const std::int64_t left = std::max<std::int64_t>(0, *threshold.available - *threshold.limit);
    all.left = std::min(all.left.value_or(left), left);
  }
  return all;
}

// The working sets of all pods together; absent: that of one is unknown.
std::optional<std::int64_t> use_of_pods(const CgroupTable& table) {
  const PodIndex index(table);
  std::int64_t sum = 0;
  for (const PodRow& row : table.pods) {
    const hr_record* record = index.record_of(row.cgroup);
    const auto used = record ? working_set(*record) : std::nullopt;
    if (!used) return std::nullopt;
    sum += used->count;
  }
  return sum;
}

// By the predictor that is too low least often; docs/simulate.md.
std::optional<std::int64_t> growth_of_pods(const PublishedViews& views) {
  constexpr std::size_t kDrift = 0;
  static_assert(kPeakPredictors[kDrift].name == "drift");
  const auto forecasts = views.memory_forecasts.latest();
  const auto table = views.cgroups.latest();
  if (!forecasts || forecasts->size() <= kDrift || !table || !(*forecasts)[kDrift].forecast)
    return std::nullopt;
  const auto used = use_of_pods(*table);
  if (!used) return std::nullopt;
  const auto peak = static_cast<std::int64_t>(*(*forecasts)[kDrift].forecast);
  return std::max<std::int64_t>(0, peak - *used);
}

bool is_batch(const Pod& pod) {
  return std::ranges::any_of(pod.containers, [](const Container& container) {
    return container.requests.contains("headroom.io/batch-memory") ||
           container.requests.contains("headroom.io/batch-cpu");
  });
}

// The working sets of batch pods; absent: that of one is unknown.
std::optional<std::int64_t> use_of_batch_pods(const CgroupTable& table, const PodIndex& index) {
  std::int64_t sum = 0;
  for (const PodRow& row : table.pods) {
    if (!is_batch(*row.pod)) continue;
    const hr_record* record = index.record_of(row.cgroup);
    const auto used = record ? working_set(*record) : std::nullopt;
    if (!used) return std::nullopt;
    sum += used->count;
  }
  return sum;
}

std::optional<std::int64_t> batch_memory(const PublishedViews& views,
                                         std::optional<std::int64_t> left,
                                         std::optional<std::int64_t> growth) {
  const auto table = views.cgroups.latest();
  if (!table || !left || !growth) return std::nullopt;
  const auto used = use_of_batch_pods(*table, PodIndex(*table));
  if (!used) return std::nullopt;
  return std::max<std::int64_t>(0, *left - *growth) + *used;
}

std::optional<std::uint64_t> nanocores_of(const CgroupTable& table, const hr_record* record) {
  if (!record) return std::nullopt;
  const auto i = static_cast<std::size_t>(record - table.records.data());
  if (i >= table.usage_nanocores.size() || table.usage_nanocores[i] == HR_UNKNOWN)
    return std::nullopt;
  return table.usage_nanocores[i];
}

// Thousandths of a CPU that all but batch pods use.
std::optional<std::uint64_t> cpu_of_others(const PublishedViews& views) {
  const auto table = views.cgroups.latest();
  if (!table) return std::nullopt;
  const PodIndex index(*table);
  const auto root = std::ranges::find(table->records, hr_u64{0}, &hr_record::parent_id);
  auto used = nanocores_of(*table, root == table->records.end() ? nullptr : &*root);
  for (const PodRow& row : table->pods) {
    if (!used || !is_batch(*row.pod)) continue;
    const auto of_pod = nanocores_of(*table, index.record_of(row.cgroup));
    used = of_pod ? std::optional(*used - std::min(*used, *of_pod)) : std::nullopt;
  }
  return used ? std::optional(*used / 1'000'000) : std::nullopt;
}

Json cpu_capacity_of(const NodeView& node) {
  if (!node.status) return nullptr;
  const auto found = node.status->capacity.find("cpu");
  if (found == node.status->capacity.end()) return nullptr;
  return found->second.milli_value();
}

Json capacity_of(const NodeView& node) {
  const auto& seen = node.observations[static_cast<std::size_t>(Signal::kMemoryAvailable)];
  return seen ? Json(seen->capacity) : Json(nullptr);
}

}  // namespace

Json scheduling_json(const PublishedViews& views) {
  const auto node = views.node.latest();
  if (!node) return nullptr;
  const HardThresholds hard = hard_thresholds(*node);
  const auto growth = growth_of_pods(views);
  return {{"at_ns", node->at.time_since_epoch().count()},
          {"contention",
           {{"cpu", contention_of(*node, Signal::kCpuPressure)},
            {"memory", contention_of(*node, Signal::kMemoryPressure)}}},
          {"hard_threshold", or_null(hard.met)},
          {"shortage_seconds", or_null(hard.seconds)},
          {"memory",
           {{"capacity", capacity_of(*node)},
            {"left", or_null(hard.left)},
            {"growth", or_null(growth)},
            {"batch", or_null(batch_memory(views, hard.left, growth))}}},
          {"cpu",
           {{"capacity_milli", cpu_capacity_of(*node)},
            {"used_milli", or_null(cpu_of_others(views))}}}};
}

}  // namespace headroom::report
