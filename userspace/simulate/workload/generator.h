// SPDX-License-Identifier: Apache-2.0
// generate_workload(): the pods of a fleet, drawn from stated distributions (docs/simulate.md).
#pragma once

#include "simulate/workload/pod_plan.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace headroom::simulate {

struct WorkloadOptions {
  std::uint64_t seed = 1;
  std::size_t nodes = 100;
  std::size_t pods_per_node = 15;  // at any time, on average
  Duration length = std::chrono::hours(24);
  Bytes node_memory{std::int64_t{64} << 30};
  std::int64_t node_milli_cpu = 16'000;
  // The requests of all pods together, as a share of the nodes' memory.
  double requested_share = 0.75;
  // Pods that take memory until they hold several times their request, for each node and day.
  double bursts_per_node_day = 1;
  // The memory of pods follows these, one for each pod, chosen at random; empty: the model.
  std::vector<std::shared_ptr<const MemorySeries>> series;
};

// By arrival. The pods that run when the simulation begins arrive at time zero.
std::vector<PodPlan> generate_workload(const WorkloadOptions& options);

// A pod of which requests and times are known from a trace.
struct Arrival {
  Duration at{0};                  // from the trace's begin
  std::optional<Duration> runs{};  // absent: it is drawn as a service's
  std::int64_t milli_cpu = 0;
  Bytes memory;
};

// Arrivals of a trace instead, until options.length. Their memory use is drawn.
std::vector<PodPlan> workload_of(const WorkloadOptions& options, const std::vector<Arrival>& trace);

// Sets limit, memory use and burst of a pod of which requests, class and times are known.
void draw_memory_use(const WorkloadOptions& options, PodPlan& plan);

}  // namespace headroom::simulate
