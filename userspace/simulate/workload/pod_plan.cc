// SPDX-License-Identifier: Apache-2.0
#include "simulate/workload/pod_plan.h"

#include "simulate/workload/random.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace headroom::simulate {
namespace {

// A new pod reaches its first use in this time; by the model a share of its typical use.
constexpr Duration kStart = std::chrono::seconds(10);
constexpr double kAtStart = 0.3;
constexpr Duration kDay = std::chrono::hours(24);

// Steps differ by a fast part, of one minute, and a slow one, of half an hour.
double noise_at(const PodPlan& plan, std::int64_t step) {
  constexpr std::int64_t kSlow = 30;
  const auto draw = [&](std::int64_t index, std::uint64_t salt) {
    return Random(plan.id * 4 + salt, static_cast<std::uint64_t>(index)).bell();
  };
  const std::int64_t block = step / kSlow;
  const double along = static_cast<double>(step % kSlow) / kSlow;
  const double slow = draw(block, 1) * (1 - along) + draw(block + 1, 1) * along;
  return 0.4 * draw(step, 2) + 0.9 * slow;
}

double typical_at(const PodPlan& plan, std::int64_t step, Instant clock) {
  const MemoryModel& model = plan.model;
  const double day = seconds_of(clock.time_since_epoch()) / seconds_of(kDay);
  const double wave = std::sin(2 * std::numbers::pi * day);
  const double share = 1 + model.daily * wave + model.noise * noise_at(plan, step);
  return model.typical * std::max(share, 0.1);
}

bool is_bursting(const MemoryModel& model, Duration age, double level) {
  return model.burst_rate > 0 && age >= model.burst_at && level < model.burst_to;
}

// It ends with the step, so that the rate is seen by all that watch a minute.
Segment burst_segment(const MemoryModel& model, Duration age, double level) {
  const std::chrono::duration<double> left{(model.burst_to - level) / model.burst_rate};
  return {age + std::max<Duration>(std::chrono::duration_cast<Duration>(left), Duration(1)),
          model.burst_to};
}

Segment model_segment(const PodPlan& plan, Duration age, double level, Instant clock) {
  const MemoryModel& model = plan.model;
  if (is_bursting(model, age, level)) return burst_segment(model, age, level);
  const std::int64_t step = age / kModelStep + 1;
  Duration until = kModelStep * step;
  const bool burst_is_over = model.burst_rate > 0 && age >= model.burst_at;
  if (burst_is_over) return {until, level};
  if (model.burst_rate > 0) until = std::min(until, std::max(model.burst_at, age + Duration(1)));
  return {until, typical_at(plan, step, clock + (until - age))};
}

Segment series_segment(const PodPlan& plan, Duration age) {
  const MemorySeries& series = *plan.series;
  if (series.at.size() < 2) return {age + kModelStep, series.values.front() * plan.series_scale};
  const Duration whole = series.at.back() + (series.at.back() - series.at[series.at.size() - 2]);
  const Duration place = (plan.series_offset + age) % whole;
  const auto next = std::upper_bound(series.at.begin(), series.at.end(), place);
  const bool wraps = next == series.at.end();
  const Duration until = age + (wraps ? whole : *next) - place;
  const auto index = wraps ? 0 : static_cast<std::size_t>(next - series.at.begin());
  return {until, series.values[index] * plan.series_scale};
}

double series_level(const PodPlan& plan, Duration age) {
  const MemorySeries& series = *plan.series;
  if (series.at.size() < 2) return series.values.front() * plan.series_scale;
  const Duration whole = series.at.back() + (series.at.back() - series.at[series.at.size() - 2]);
  const Duration place = (plan.series_offset + age) % whole;
  const auto next = std::upper_bound(series.at.begin(), series.at.end(), place);
  return series.values[static_cast<std::size_t>(next - series.at.begin()) - 1] * plan.series_scale;
}

}  // namespace

double first_level(const PodPlan& plan) {
  if (plan.age_at_arrival == Duration::zero()) return 0;
  return plan.series ? series_level(plan, plan.age_at_arrival) : plan.model.typical;
}

Segment next_segment(const PodPlan& plan, Duration age, double level, Instant clock) {
  if (age < kStart)
    return {kStart, plan.series ? series_level(plan, kStart) : kAtStart * plan.model.typical};
  return plan.series ? series_segment(plan, age) : model_segment(plan, age, level, clock);
}

std::shared_ptr<const Pod> describe(const PodPlan& plan) {
  auto pod = std::make_shared<Pod>();
  pod->uid = "uid-" + std::to_string(plan.id);
  pod->name = (plan.job ? "job-" : "service-") + std::to_string(plan.id);
  pod->priority = plan.priority;
  pod->declared_qos = plan.qos;
  Container container{.name = "main", .requests = {}, .limits = {}};
  const auto bytes = [](Bytes count) {
    return Quantity::of(count.count, Quantity::Format::kBinarySI);
  };
  if (plan.milli_cpu > 0) container.requests.emplace("cpu", Quantity::of_milli(plan.milli_cpu));
  if (plan.memory_request.count > 0)
    container.requests.emplace("memory", bytes(plan.memory_request));
  if (plan.memory_limit) container.limits.emplace("memory", bytes(*plan.memory_limit));
  if (plan.qos == QosClass::kGuaranteed)
    container.limits.insert(container.requests.begin(), container.requests.end());
  pod->containers.push_back(std::move(container));
  return pod;
}

}  // namespace headroom::simulate
