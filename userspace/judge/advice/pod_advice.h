// SPDX-License-Identifier: Apache-2.0
// advise(): the requests, the memory limit and the CPU quota that a pod's recorded use asks for,
// with the numbers they follow from. Nothing applies them.
//
//  memory request: the 95th percentile of the working set, and a tenth more: a pod over its request
//    is evicted first, so it should not be for more than a twentieth of the time;
//  memory limit: the highest working set and a fifth more; half more, and more than the present
//    limit, if the pod was at that limit: its use without it is unknown;
//  CPU request: the 90th percentile of its CPU use;
//  CPU quota: changed only if more than 1 % of its periods were throttled: the 99th percentile of
//    its use without the time at the quota, and a tenth more.
#pragma once

#include <headroom/units.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace headroom {

// What was read of a pod at one sweep, and the time since the one before.
struct PodUseSample {
  Duration length{0};
  std::optional<std::int64_t> working_set;  // bytes
  std::optional<double> cpus;               // CPU time per time
};

struct PodUse {
  std::vector<PodUseSample> samples;
  std::optional<std::int64_t> memory_request, memory_limit;  // bytes; absent: none
  std::optional<double> cpu_request, cpu_quota;              // CPUs; absent: none
  // Growth over all samples.
  std::uint64_t periods = 0, throttled_periods = 0;
  Duration at_quota{0};  // time that a run queue was throttled
  std::uint64_t limit_hits = 0, oom_kills = 0;
  std::uint64_t evictions = 0;  // done, or that would have been
};

// Percentiles over time; absent: never known.
struct UseSummary {
  double median = 0, p90 = 0, p95 = 0, p99 = 0, most = 0;
};
std::optional<UseSummary> summarise(std::vector<std::pair<double, Duration>> values);

struct PodAdvice {
  bool enough = false;  // of samples to advise from; else only the evidence is set
  Duration observed{0};
  std::optional<UseSummary> memory, cpu;  // bytes; CPUs
  std::optional<double> over_request;     // share of the time; absent: no request, or unknown
  std::optional<double> throttled;        // share of the periods; absent: no quota
  // In whole MiB, and in hundredths of a CPU. Absent: the present value is right.
  std::optional<std::int64_t> memory_request, memory_limit;
  std::optional<double> cpu_request, cpu_quota;
};

// Less is not enough to advise from.
inline constexpr Duration kLeastObserved = std::chrono::seconds(60);
inline constexpr std::size_t kLeastSamples = 10;

PodAdvice advise(const PodUse& use);

}  // namespace headroom
