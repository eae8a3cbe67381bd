// SPDX-License-Identifier: Apache-2.0
// headroom_slice_*: the cgroups between the root and the pods, desired and actual.
#include "report/metrics/metric_family.h"
#include "report/metrics/metrics.h"
#include "report/view/slices_view.h"

#include <charconv>
#include <limits>

namespace headroom::report {
namespace {

// The content of a cgroup file as a number; the quota of cpu.max.
std::optional<double> number(std::string_view text) {
  text = text.substr(0, text.find(' '));
  if (text == "max") return std::numeric_limits<double>::infinity();
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return static_cast<double>(count);
}

void add_settings(MetricFamilyBuilder& family, const SliceView& slice, const CgroupValues& values) {
  for (const CgroupSetting& setting : cgroup_settings(values))
    family.add(number(setting.value), {{"setting", setting.file}, {"slice", slice.path}});
}

struct Amount {
  std::string_view resource;
  std::string_view unit;
  std::optional<double> value;
};

template <class T>
std::optional<double> count(const std::optional<T>& amount, double divisor = 1) {
  if (!amount) return std::nullopt;
  return static_cast<double>(amount->count) / divisor;
}

void add_amounts(MetricFamilyBuilder& family, const SliceView& slice,
                 std::initializer_list<Amount> amounts) {
  for (const Amount& amount : amounts)
    family.add(amount.value, {{"resource", amount.resource},
                              {"role", name(slice.role)},
                              {"slice", slice.path},
                              {"unit", amount.unit}});
}

std::uint64_t differing_settings(const SliceView& slice) {
  return slice.exists ? cgroup_settings(slice.differs).size()
                      : cgroup_settings(slice.desired).size();
}

std::uint64_t over_limit(const SliceView& slice) {
  const auto& wanted = slice.desired.memory_max;
  if (!slice.excess_usage || !wanted || wanted->is_max()) return 0;
  return static_cast<std::uint64_t>((*slice.excess_usage - *wanted->most()).count);
}

}  // namespace

void add_slice_families(const SlicesView& view, Families& families) {
  auto desired = MetricFamilyBuilder::gauge("headroom_slice_setting_desired",
                                            "Desired value of the cgroup file. +Inf is max.");
  auto actual = MetricFamilyBuilder::gauge("headroom_slice_setting_actual",
                                           "Actual value of the cgroup file.");
  auto differing = MetricFamilyBuilder::gauge(
      "headroom_slice_settings_differing",
      "Settings of the slice whose actual value differs from the desired value.");
  auto share =
      MetricFamilyBuilder::gauge("headroom_slice_share", "Resources reserved for the slice.");
  auto usage = MetricFamilyBuilder::gauge("headroom_slice_usage", "Resources used by the slice.");
  auto drift = MetricFamilyBuilder::counter("headroom_slice_setting_drift_total",
                                            "Changes of a setting by another program.");
  auto excess_usage =
      MetricFamilyBuilder::gauge("headroom_slice_over_limit_bytes",
                                 "Memory in use above the desired memory.max of the slice.");
  auto lowerings = MetricFamilyBuilder::counter(
      "headroom_slice_limit_lowerings_total",
      "Attempts to reclaim memory so that memory.max of the slice can be lowered.");
  for (const SliceView& slice : view.slices) {
    excess_usage.add(over_limit(slice), {{"slice", slice.path}});
    lowerings.add(slice.lowering.reached, {{"outcome", "done"}, {"slice", slice.path}});
    lowerings.add(slice.lowering.missed, {{"outcome", "failed"}, {"slice", slice.path}});
    add_settings(desired, slice, slice.desired);
    add_settings(actual, slice, slice.actual);
    differing.add(differing_settings(slice), {{"role", name(slice.role)}, {"slice", slice.path}});
    add_amounts(share, slice,
                {{"cpu", "core", count(slice.share.cpu, 1000)},
                 {"memory", "byte", count(slice.share.memory)},
                 {"pids", "integer", count(slice.share.pids)}});
    add_amounts(usage, slice,
                {{"cpu", "core", slice.cpus},
                 {"memory", "byte", count(slice.memory)},
                 {"pids", "integer", count(slice.tasks)}});
    for (const auto& [file, times] : slice.drift)
      drift.add(times, {{"setting", file}, {"slice", slice.path}});
  }
  for (MetricFamilyBuilder* family :
       {&desired, &actual, &differing, &share, &usage, &drift, &excess_usage, &lowerings})
    family->append_to(families);
  MetricFamilyBuilder::counter("headroom_slice_dbus_calls_total",
                               "D-Bus calls to systemd that set slice properties.")
      .add(view.calls - view.calls_failed, {{"outcome", "done"}})
      .add(view.calls_failed, {{"outcome", "failed"}})
      .append_to(families);
  MetricFamilyBuilder::counter("headroom_slice_dbus_seconds_total",
                               "Time spent waiting for these D-Bus calls.")
      .add(std::chrono::duration<double>(view.calls_waited).count())
      .append_to(families);
}

}  // namespace headroom::report
