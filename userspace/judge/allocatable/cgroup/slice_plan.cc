// SPDX-License-Identifier: Apache-2.0
#include "judge/allocatable/cgroup/slice_plan.h"

#include <algorithm>
#include <utility>

namespace headroom {
namespace {

constexpr Duration kMinRetryPause = std::chrono::milliseconds(100);
constexpr Duration kMaxRetryPause = std::chrono::minutes(1);
constexpr unsigned kDoublings = 10;

bool holds(const std::vector<CgroupSetting>& cgroup_settings, const CgroupSetting& setting) {
  return std::find(cgroup_settings.begin(), cgroup_settings.end(), setting) !=
         cgroup_settings.end();
}

std::vector<CgroupSetting> without(std::vector<CgroupSetting> all,
                                   const std::vector<CgroupSetting>& those) {
  std::erase_if(all, [&](const CgroupSetting& setting) { return holds(those, setting); });
  return all;
}

// Settings that were correct and have changed since. A value that is desired only since then was
// never correct.
std::vector<std::string> drift(const std::vector<CgroupSetting>& confirmed,
                               const CgroupValues& write) {
  std::vector<std::string> files;
  for (const CgroupSetting& setting : cgroup_settings(write))
    if (holds(confirmed, setting)) files.push_back(setting.file);
  return files;
}

// Absent: the limit is as low already.
std::optional<Limit<Bytes>> one_step_down(const std::optional<Limit<Bytes>>& actual, Bytes in_use,
                                          Bytes step) {
  if (actual && !actual->is_max() && *actual->most() <= in_use + step + step) return std::nullopt;
  return Limit<Bytes>(in_use + step);
}

void delay_memory_limit(SlicePlan& plan, const SliceReading& reading, std::optional<Bytes> step) {
  const auto& wanted = plan.write.memory_max;
  const auto& in_use = reading.memory;
  if (!wanted || wanted->is_max() || !in_use || *in_use <= *wanted->most()) return;
  plan.excess_usage = in_use;
  plan.write.memory_max =
      step ? one_step_down(reading.values->memory_max, *in_use, *step) : std::nullopt;
}

void compare(SlicePlan& plan, const CgroupValues& desired, const SliceReading& reading,
             std::optional<Bytes> step) {
  Difference difference = diff(desired, *reading.values, reading.page);
  const auto confirmed =
      without(without(cgroup_settings(desired), cgroup_settings(difference.write)),
              cgroup_settings(difference.unread));
  const bool settled = plan.after.settled;
  if (settled) plan.drifted = drift(plan.after.confirmed, difference.write);
  plan.after.confirmed = settled ? confirmed : std::vector<CgroupSetting>{};
  plan.write = std::move(difference.write);
  plan.unread = std::move(difference.unread);
  plan.create = !reading.missing_controllers.empty();
  delay_memory_limit(plan, reading, step);
}

void plan_creation(SlicePlan& plan, const CgroupValues& desired) {
  if (plan.after.exists) plan.drifted.emplace_back("slice");
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
    plan_creation(plan, desired);
  plan.after.exists = reading.values.has_value();
  if (plan.create || !plan.write.empty())
    plan.due = std::max(at, before.not_before);
  else
    plan.after.attempts = 0;
  return plan;
}

void record_attempt(SliceHistory& history, Instant at) {
  const Duration pause = kMinRetryPause * (1 << std::min(history.attempts, kDoublings));
  history.not_before = at + std::min(pause, kMaxRetryPause);
  ++history.attempts;
}

}  // namespace headroom
