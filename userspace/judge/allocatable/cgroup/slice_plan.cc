// SPDX-License-Identifier: Apache-2.0
#include "judge/allocatable/cgroup/slice_plan.h"

#include <algorithm>
#include <utility>

namespace headroom {
namespace {

constexpr Duration kFirstPause = std::chrono::milliseconds(100);
constexpr Duration kLongestPause = std::chrono::minutes(1);
constexpr unsigned kDoublings = 10;

bool holds(const std::vector<Setting>& settings, const Setting& setting) {
  return std::find(settings.begin(), settings.end(), setting) != settings.end();
}

std::vector<Setting> without(std::vector<Setting> all, const std::vector<Setting>& those) {
  std::erase_if(all, [&](const Setting& setting) { return holds(those, setting); });
  return all;
}

// Of what was right: what is now otherwise. A value that is wanted since has never been right.
std::vector<std::string> drift(const std::vector<Setting>& confirmed, const CgroupValues& write) {
  std::vector<std::string> knobs;
  for (const Setting& setting : settings(write))
    if (holds(confirmed, setting)) knobs.push_back(setting.file);
  return knobs;
}

// Nothing: it is as low as that already.
std::optional<Limit<Bytes>> one_step_down(const std::optional<Limit<Bytes>>& actual, Bytes in_use,
                                          Bytes step) {
  if (actual && !actual->is_max() && *actual->most() <= in_use + step + step) return std::nullopt;
  return Limit<Bytes>(in_use + step);
}

void delay_memory_limit(SlicePlan& plan, const SliceReading& reading, std::optional<Bytes> step) {
  const auto& wanted = plan.write.memory_max;
  const auto& in_use = reading.memory;
  if (!wanted || wanted->is_max() || !in_use || *in_use <= *wanted->most()) return;
  plan.over = in_use;
  plan.write.memory_max =
      step ? one_step_down(reading.values->memory_max, *in_use, *step) : std::nullopt;
}

void compare(SlicePlan& plan, const CgroupValues& desired, const SliceReading& reading,
             std::optional<Bytes> step) {
  Difference difference = diff(desired, *reading.values);
  plan.drifted = drift(plan.after.confirmed, difference.write);
  plan.after.confirmed =
      without(without(settings(desired), settings(difference.write)), settings(difference.unread));
  plan.write = std::move(difference.write);
  plan.unread = std::move(difference.unread);
  plan.create = !reading.lacking.empty();
  delay_memory_limit(plan, reading, step);
}

void find_missing(SlicePlan& plan, const CgroupValues& desired) {
  if (plan.after.there) plan.drifted.emplace_back("slice");
  plan.after.confirmed.clear();
  plan.write = desired;
  plan.create = true;
}

}  // namespace

SlicePlan plan_slice(const CgroupValues& desired, const SliceReading& reading,
                     const SliceHistory& before, Instant at, std::optional<Bytes> step) {
  SlicePlan plan;
  plan.after = before;
  if (reading.values)
    compare(plan, desired, reading, step);
  else
    find_missing(plan, desired);
  plan.after.there = reading.values.has_value();
  if (plan.create || !plan.write.empty())
    plan.due = std::max(at, before.not_before);
  else
    plan.after.attempts = 0;
  return plan;
}

void record_attempt(SliceHistory& history, Instant at) {
  const Duration pause = kFirstPause * (1 << std::min(history.attempts, kDoublings));
  history.not_before = at + std::min(pause, kLongestPause);
  ++history.attempts;
}

}  // namespace headroom
