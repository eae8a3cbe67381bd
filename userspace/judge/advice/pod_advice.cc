// SPDX-License-Identifier: Apache-2.0
#include "judge/advice/pod_advice.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace headroom {
namespace {

constexpr double kMiB = 1024.0 * 1024;
constexpr double kRequestMargin = 1.1, kLimitMargin = 1.2, kCappedMargin = 1.5;
constexpr double kThrottledPeriods = 0.01;
// A value that differs by less is right as it is.
constexpr double kTolerance = 0.1;
// Use beyond this cannot be derived from use at a quota.
constexpr double kMostOverQuota = 4;

// Up, but not for what a multiplication of doubles adds.
double round_up(double value) {
  return std::ceil(value - 1e-6);
}
std::int64_t whole_mib(double bytes) {
  return static_cast<std::int64_t>(round_up(bytes / kMiB) * kMiB);
}
double whole_centi(double cpus) {
  return std::max(0.01, round_up(cpus * 100) / 100);
}

// Absent if the present value is close enough.
template <class Value>
std::optional<Value> unless_close(std::optional<Value> present, Value wanted) {
  const auto now = present ? static_cast<double>(*present) : 0;
  const bool close = present && std::abs(now - static_cast<double>(wanted)) <=
                                    kTolerance * std::max(now, static_cast<double>(wanted));
  return close ? std::nullopt : std::optional(wanted);
}

void summarise_use(const PodUse& use, PodAdvice& advice) {
  std::vector<std::pair<double, Duration>> memory, cpu;
  Duration known{0}, over{0};
  for (const PodUseSample& sample : use.samples) {
    advice.observed += sample.length;
    if (sample.cpus) cpu.emplace_back(*sample.cpus, sample.length);
    if (!sample.working_set) continue;
    memory.emplace_back(static_cast<double>(*sample.working_set), sample.length);
    known += sample.length;
    if (use.memory_request && *sample.working_set > *use.memory_request) over += sample.length;
  }
  advice.memory = summarise(std::move(memory));
  advice.cpu = summarise(std::move(cpu));
  if (use.memory_request && known > Duration::zero())
    advice.over_request = seconds_of(over) / seconds_of(known);
  if (use.cpu_quota && use.periods > 0)
    advice.throttled =
        static_cast<double>(use.throttled_periods) / static_cast<double>(use.periods);
}

void advise_memory(const PodUse& use, PodAdvice& advice) {
  if (!advice.memory) return;
  const bool capped = use.memory_limit && (use.limit_hits > 0 || use.oom_kills > 0);
  double limit = advice.memory->most * (capped ? kCappedMargin : kLimitMargin);
  if (capped) limit = std::max(limit, static_cast<double>(*use.memory_limit) * kLimitMargin);
  const std::int64_t request = whole_mib(advice.memory->p95 * kRequestMargin);
  advice.memory_request = unless_close(use.memory_request, request);
  advice.memory_limit = unless_close(use.memory_limit, std::max(whole_mib(limit), request));
}

void advise_cpu(const PodUse& use, PodAdvice& advice) {
  if (!advice.cpu) return;
  advice.cpu_request = unless_close(use.cpu_request, whole_centi(advice.cpu->p90));
  if (!advice.throttled || *advice.throttled <= kThrottledPeriods) return;
  const double at_quota =
      std::chrono::duration<double>(use.at_quota) / std::chrono::duration<double>(advice.observed);
  const double free = std::max(1 - at_quota, 1 / kMostOverQuota);
  advice.cpu_quota = whole_centi(std::max(advice.cpu->p99 / free, *use.cpu_quota) * kRequestMargin);
  // A request above the limit is refused.
  if (advice.cpu_request) advice.cpu_request = std::min(*advice.cpu_request, *advice.cpu_quota);
}

}  // namespace

std::optional<UseSummary> summarise(std::vector<std::pair<double, Duration>> values) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  Duration all{0};
  for (const auto& [value, length] : values)
    all += length;
  const auto at = [&](double share) {
    Duration so_far{0};
    for (const auto& [value, length] : values) {
      so_far += length;
      if (std::chrono::duration<double>(so_far) >= share * std::chrono::duration<double>(all))
        return value;
    }
    return values.back().first;
  };
  return UseSummary{.median = at(0.5),
                    .p90 = at(0.9),
                    .p95 = at(0.95),
                    .p99 = at(0.99),
                    .most = values.back().first};
}

PodAdvice advise(const PodUse& use) {
  PodAdvice advice;
  summarise_use(use, advice);
  advice.enough = advice.observed >= kLeastObserved && use.samples.size() >= kLeastSamples;
  if (!advice.enough) return advice;
  advise_memory(use, advice);
  advise_cpu(use, advice);
  return advice;
}

}  // namespace headroom
