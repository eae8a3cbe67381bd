// SPDX-License-Identifier: Apache-2.0
// Fleets: the same bytes for any number of threads, a node that replays, and pods placed as by
// judge/admission.
#include "simulate/fleet/fleet.h"

#include "ctl/simulate/simulate.h"
#include "judge/admission/scheduler.h"
#include "recording/replayer.h"
#include "simulate/fleet/node_placement.h"
#include "simulate/simulated_node.h"
#include "simulate/workload/generator.h"
#include "simulate/workload/random.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace headroom::simulate::test {
namespace {

WorkloadOptions busy_fleet(std::size_t nodes, Duration length) {
  WorkloadOptions options{.nodes = nodes, .pods_per_node = 12, .length = length};
  options.bursts_per_node_day = 24;
  return options;
}

FleetOptions options_of(const WorkloadOptions& workload, AgentKind agent, std::size_t threads = 1) {
  return {.nodes = workload.nodes,
          .shape = {},
          .length = workload.length,
          .policy = hard_below(100_MiB),
          .agent = agent,
          .seed = workload.seed,
          .threads = threads};
}

TEST(SimulatedFleet, HasTheSameBytesForAnyNumberOfThreads) {
  const auto workload = busy_fleet(300, 30min);
  const auto pods = generate_workload(workload);
  std::string first;
  for (const std::size_t threads : {1u, 2u, 5u}) {
    std::vector<FleetResult> results;
    for (const AgentKind agent : {AgentKind::kHeadroom, AgentKind::kKoordinator})
      results.push_back(simulate_fleet(options_of(workload, agent, threads), pods));
    EXPECT_GT(results[0].totals.evictions, 0u);
    const ctl::SimulatedFleet fleet{.workload = workload, .shape = {}, .source = "test"};
    const std::string text = ctl::fleet_json(fleet, results) + ctl::fleet_svg(fleet, results);
    if (first.empty()) first = text;
    EXPECT_EQ(text, first) << threads;
  }
}

TEST(SimulatedFleet, AnotherSeedIsAnotherFleet) {
  auto workload = busy_fleet(5, 10min);
  const auto one = generate_workload(workload);
  workload.seed = 2;
  const auto two = generate_workload(workload);
  ASSERT_FALSE(one.empty());
  EXPECT_NE(one[0].model.typical, two[0].model.typical);
}

TEST(SimulatedFleet, ARecordedNodeIsReplayedBitForBit) {
  const auto workload = busy_fleet(20, 2h);
  auto options = options_of(workload, AgentKind::kHeadroom);
  const auto pods = generate_workload(workload);
  const FleetResult fleet = simulate_fleet(options, pods);
  std::size_t replayed_evictions = 0, simulated = 0;
  for (std::uint32_t node = 0; node < 20; node += 3) {
    options.recorded_node = node;
    const FleetResult result = simulate_fleet(options, pods);
    EXPECT_EQ(result.totals.evictions, fleet.totals.evictions) << "recording changes nothing";
    auto tape = recording::TapeReader::open(result.recording);
    ASSERT_TRUE(tape);
    const auto replayed = recording::replay(*tape);
    ASSERT_TRUE(replayed) << replayed.error().what;
    EXPECT_TRUE(replayed->identical());
    EXPECT_EQ(replayed->lost, 0u);
    EXPECT_FALSE(replayed->cut_short);
    for (const auto& turn : replayed->answers)
      for (const Decision& decision : turn.replayed)
        replayed_evictions += decision.act == Act::kKill;
    simulated += static_cast<std::size_t>(std::count_if(
        result.incidents.begin(), result.incidents.end(), [&](const FleetIncident& each) {
          return each.node == node && each.kind == FleetEvent::Kind::kEvicted;
        }));
  }
  EXPECT_GT(simulated, 0u);
  EXPECT_EQ(replayed_evictions, simulated);
}

// Pods are placed by their requests, and those that ran before bring their memory with them: a node
// that is full at time zero would be a shortage that no agent could have seen.
TEST(SimulatedFleet, NoNodeBeginsShortOfMemory) {
  auto workload = busy_fleet(100, 1s);
  workload.requested_share = 2;
  workload.bursts_per_node_day = 0;
  const auto fleet =
      simulate_fleet(options_of(workload, AgentKind::kNone), generate_workload(workload));
  EXPECT_GT(fleet.placed, 500u);
  EXPECT_EQ(fleet.totals.kernel_ooms, 0u);
  EXPECT_GT(fleet.totals.lowest_available, 0.0);
}

TEST(SimulatedFleet, AnAgentThatLooksEveryTenSecondsLeavesKillsToTheKernel) {
  const auto workload = busy_fleet(40, 2h);
  const auto pods = generate_workload(workload);
  const auto run = [&](AgentKind agent) {
    return simulate_fleet(options_of(workload, agent), pods);
  };
  const FleetResult headroom = run(AgentKind::kHeadroom), kubelet = run(AgentKind::kKubelet),
                    none = run(AgentKind::kNone);
  EXPECT_GT(none.totals.kernel_ooms, 5u);
  EXPECT_EQ(none.totals.evictions, 0u);
  EXPECT_GT(kubelet.totals.kernel_ooms, 2u);
  EXPECT_EQ(headroom.totals.kernel_ooms, 0u);
  EXPECT_EQ(headroom.totals.wrong_victims, 0u);
  ASSERT_FALSE(headroom.totals.latencies.empty());
  EXPECT_LT(headroom.totals.latencies.back(), 10ms);
}

// The pods of a random node, as both know them.
TEST(SimulatedPlacement, ChoosesTheNodeThatTheSchedulerChooses) {
  Random random(11);
  for (int round = 0; round < 40; ++round) {
    std::vector<NodeState> states;
    std::vector<Placement::NodeSums> sums;
    const auto count = 1 + random.next() % 6;
    for (std::size_t i = 0; i < count; ++i) {
      const auto cpu = static_cast<std::int64_t>(2000 + random.next() % 8000);
      const auto memory = static_cast<std::int64_t>((4 + random.next() % 28) << 30);
      NodeState& state = states.emplace_back();
      state.name = "node-" + std::to_string(i);
      state.allocatable = {{"cpu", cpu}, {"memory", memory}, {"pods", 8}};
      state.conditions[static_cast<std::size_t>(Condition::kMemoryPressure)] =
          random.next() % 5 == 0;
      sums.push_back({.milli_cpu = cpu,
                      .memory = memory,
                      .max_pods = 8,
                      .memory_pressure = state.conditions[0]});
    }
    Placement placement(std::move(sums));
    for (std::uint64_t id = 1; id <= 40; ++id) {
      PodPlan plan = steady_pod(id, 1_GiB);
      plan.milli_cpu = random.next() % 3 == 0 ? 0 : static_cast<std::int64_t>(random.next() % 1500);
      if (random.next() % 3 > 0)
        plan.memory_request = Bytes{static_cast<std::int64_t>(random.next() % (3ull << 30))};
      const bool requests = plan.milli_cpu > 0 || plan.memory_request.count > 0;
      plan.qos = requests ? QosClass::kBurstable : QosClass::kBestEffort;
      const auto pod = describe(plan);
      const PlacementResult expected = select_node(*pod, states);
      const auto chosen = placement.place(plan);
      ASSERT_EQ(chosen.has_value(), expected.chosen.has_value()) << round << " " << id;
      if (!chosen) continue;
      ASSERT_EQ(*chosen, *expected.chosen) << round << " " << id;
      states[*chosen].pods.push_back(on_node(*pod));
    }
  }
}

TEST(SimulatedPlacement, CountsTheMemoryThatAPodBringsWithIt) {
  Placement placement(
      {{.milli_cpu = 1000, .memory = 8ll << 30, .max_pods = 9, .unused_memory = 0},
       {.milli_cpu = 1000, .memory = 8ll << 30, .max_pods = 9, .unused_memory = 1536ll << 20}});
  const PodPlan running = steady_pod(1, 1_GiB, 512_MiB);
  EXPECT_EQ(placement.place(running), 1u);
  EXPECT_FALSE(placement.place(running)) << "half a GiB is left";
  PodPlan fresh = running;
  fresh.age_at_arrival = Duration::zero();
  EXPECT_EQ(placement.place(fresh), 0u) << "it begins with no memory";
}

TEST(SimulatedPlacement, FreesWhatAPodRequested) {
  Placement placement({{.milli_cpu = 1000, .memory = 1 << 30, .max_pods = 1}});
  PodPlan plan = steady_pod(1, 1_MiB, 512_MiB);
  EXPECT_TRUE(placement.place(plan));
  EXPECT_FALSE(placement.place(plan));
  placement.remove(0, plan.milli_cpu, plan.memory_request);
  EXPECT_TRUE(placement.place(plan));
}

}  // namespace
}  // namespace headroom::simulate::test
