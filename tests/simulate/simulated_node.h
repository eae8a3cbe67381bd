// SPDX-License-Identifier: Apache-2.0
// Pods and policies for tests of the simulator.
#pragma once

#include "simulate/node/headroom_agent.h"
#include "simulate/node/node.h"
#include "simulate/node/rival_agents.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace headroom::simulate::test {

using namespace std::chrono_literals;

inline std::shared_ptr<const Policy> hard_below(Bytes value) {
  auto policy = std::make_shared<Policy>();
  policy->mode = Mode::kEnforce;
  policy->thresholds = {Threshold{.signal = Signal::kMemoryAvailable,
                                  .value = Quantity::of(value.count, Quantity::Format::kBinarySI),
                                  .min_reclaim = std::nullopt}};
  return policy;
}

inline NodeShape small_node() {
  return {.capacity = 16_GiB,
          .system = 1_GiB,
          .allocatable = 14_GiB,
          .milli_cpu = 8000,
          .hard_threshold = 100_MiB};
}

// Holds the same amount for an hour. All is its processes'.
inline PodPlan steady_pod(std::uint64_t id, Bytes held, Bytes request = {}) {
  PodPlan plan;
  plan.id = id;
  plan.runs = 1h;
  plan.qos = request.count > 0 ? QosClass::kBurstable : QosClass::kBestEffort;
  plan.memory_request = request;
  plan.age_at_arrival = 10s;
  plan.exit_time = 500ms;
  plan.model.typical = static_cast<double>(held.count);
  return plan;
}

// The same, and takes `rate` a second from `at` on, until it holds `limit`.
inline PodPlan bursting_pod(std::uint64_t id, Bytes held, Bytes rate, Duration at,
                            Bytes limit = 64_GiB) {
  PodPlan plan = steady_pod(id, held);
  plan.model.burst_at = at + plan.age_at_arrival;
  plan.model.burst_rate = static_cast<double>(rate.count);
  plan.model.burst_to = static_cast<double>(limit.count);
  return plan;
}

struct NodeRun {
  Node node;
  Scratch scratch;

  NodeRun(std::unique_ptr<Agent> agent, std::vector<PodPlan> pods)
      : node(0, small_node(), std::move(agent)) {
    for (PodPlan& pod : pods)
      node.add_pod(std::move(pod), Instant{});
  }
  // What happened until then, without the end of pods.
  std::vector<FleetEvent> until(Duration time) {
    node.advance(Instant{} + time, scratch);
    std::vector<FleetEvent> all;
    for (FleetEvent& event : node.events())
      if (event.kind != FleetEvent::Kind::kFinished && event.kind != FleetEvent::Kind::kGone)
        all.push_back(std::move(event));
    return all;
  }
};

inline double seconds(Instant at) {
  return std::chrono::duration<double>(at.time_since_epoch()).count();
}

}  // namespace headroom::simulate::test
