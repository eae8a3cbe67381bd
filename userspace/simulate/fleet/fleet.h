// SPDX-License-Identifier: Apache-2.0
// simulate_fleet(): nodes on virtual time, with pods that arrive, are placed, and end.
//
// Time advances by one second at a time. Within it the nodes are independent of each other, and are
// advanced on all threads; then, on one thread, what happened is put in the order of time, and pods
// are placed. So the result does not depend on the number of threads.
#pragma once

#include "simulate/node/node.h"
#include "simulate/workload/pod_plan.h"

#include <headroom/policy.h>
#include <headroom/units.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::simulate {

enum class AgentKind : std::uint8_t { kHeadroom, kKubelet, kKoordinator, kNone };
inline constexpr std::array<std::string_view, 4> kAgentNames{"headroom", "kubelet", "koordinator",
                                                             "none"};
constexpr std::string_view name(AgentKind kind) {
  return kAgentNames[static_cast<std::size_t>(kind)];
}

struct FleetOptions {
  std::size_t nodes = 100;
  NodeShape shape;
  Duration length = std::chrono::hours(24);
  std::shared_ptr<const Policy> policy;  // of headroom and of the kubelet
  AgentKind agent = AgentKind::kHeadroom;
  std::uint64_t seed = 1;
  std::size_t threads = 1;
  // The turns of this node are recorded; with kHeadroom only.
  std::optional<std::uint32_t> recorded_node{};
  bool every_check = false;  // headroom looks at every time that judge() sets
};

// The fleet at an instant.
struct FleetSample {
  Instant at;
  double used = 0;  // share of the nodes' memory that is in use
  std::uint32_t nodes_under_pressure = 0;
};

struct FleetIncident {
  FleetEvent::Kind kind{};
  Instant at;
  std::uint32_t node = 0;
  QosClass qos = QosClass::kBestEffort;
};

struct FleetResult {
  AgentKind agent{};
  NodeTotals totals;                       // latencies in ascending order
  std::uint64_t placed = 0, unplaced = 0;  // pods; unplaced: at the end
  double waited = 0;                       // seconds that pods waited for a node
  double down = 0;  // seconds from the end of an evicted service to its replacement's start
  std::vector<FleetSample> samples;
  std::vector<FleetIncident> incidents;  // evictions and kills, in the order of time
  std::string recording;                 // of recorded_node
};

inline constexpr Duration kSchedulingPeriod = std::chrono::seconds(1);
// The time from a service's end to the start of its replacement's containers.
inline constexpr Duration kStartDelay = std::chrono::seconds(2);

FleetResult simulate_fleet(const FleetOptions& options, const std::vector<PodPlan>& workload);

}  // namespace headroom::simulate
