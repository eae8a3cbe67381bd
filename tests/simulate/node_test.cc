// SPDX-License-Identifier: Apache-2.0
// One simulated node: when each agent decides, and what the kernel does if none decides in time.
#include "simulate/simulated_node.h"
#include "simulate/workload/generator.h"
#include "simulate/workload/random.h"

#include <gtest/gtest.h>

namespace headroom::simulate::test {
namespace {

using Kind = FleetEvent::Kind;

// 15 GiB are not the system's. Two pods hold 5 GiB; a third takes 100 MiB a second from 10 s on,
// and 100 MiB are left after (15 - 6) GiB - 100 MiB, 91.16 s later.
std::vector<PodPlan> filling_pods(Bytes rate = 100_MiB) {
  return {steady_pod(1, 3_GiB, 4_GiB), steady_pod(2, 2_GiB, 4_GiB),
          bursting_pod(3, 1_GiB, rate, 10s)};
}
constexpr double kCrossing = 10 + (9 * 1024 - 100) / 100.0;

TEST(SimulatedNode, HeadroomDecidesWithinMillisecondsOfTheCrossing) {
  NodeRun run(std::make_unique<HeadroomAgent>(hard_below(100_MiB)), filling_pods());
  const auto events = run.until(300s);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, Kind::kEvicted);
  EXPECT_EQ(events[0].qos, QosClass::kBestEffort);
  EXPECT_GE(seconds(events[0].at), kCrossing);
  EXPECT_LT(seconds(events[0].at), kCrossing + 0.005);
  const NodeTotals& totals = run.node.totals();
  ASSERT_EQ(totals.latencies.size(), 1u);
  EXPECT_LT(totals.latencies[0], 5ms);
  EXPECT_EQ(totals.wrong_victims, 0u);
  EXPECT_EQ(totals.unneeded, 0u);
  EXPECT_EQ(totals.kernel_ooms, 0u);
  EXPECT_EQ(run.node.pods().size(), 2u) << "the victim has exited";
  EXPECT_LT(totals.looks, 400u) << "far from the threshold no look is needed";
}

TEST(SimulatedNode, TheKubeletDecidesAtItsTickOrTheKernelKillsBefore) {
  // At 4 MiB a second the last 36 MiB above the kernel's reserve are used up in 9 s.
  NodeRun slow(std::make_unique<KubeletAgent>(hard_below(100_MiB), 3s), filling_pods(4_MiB));
  const auto late = slow.until(1h);
  ASSERT_FALSE(late.empty());
  EXPECT_EQ(late[0].kind, Kind::kEvicted);
  const double tick = std::fmod(seconds(late[0].at) - 3, 10.0);
  EXPECT_LT(std::min(tick, 10 - tick), 0.001);

  NodeRun fast(std::make_unique<KubeletAgent>(hard_below(100_MiB), 3s), filling_pods());
  const auto killed = fast.until(120s);
  ASSERT_FALSE(killed.empty());
  EXPECT_EQ(killed[0].kind, Kind::kKernelOom);
  EXPECT_LT(seconds(killed[0].at), kCrossing + 1);
}

// Two pods begin with more than the node has. The kernel kills at once what headroom would kill,
// and headroom's decision about the same pod is the decision about this shortage.
TEST(SimulatedNode, ADecisionAboutAPodThatTheKernelKilledIsADecision) {
  NodeRun run(std::make_unique<HeadroomAgent>(hard_below(100_MiB)),
              {steady_pod(1, 8_GiB, 8_GiB), steady_pod(2, 8_GiB)});
  const auto events = run.until(60s);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, Kind::kKernelOom);
  ASSERT_EQ(run.node.totals().latencies.size(), 1u);
  EXPECT_LT(run.node.totals().latencies[0], 5ms);
}

TEST(SimulatedNode, TheKernelKillsByItsScoreAndTheContainerStartsAgain) {
  NodeRun run(std::make_unique<NoAgent>(), filling_pods());
  const auto events = run.until(200s);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, Kind::kKernelOom);
  EXPECT_EQ(events[0].qos, QosClass::kBestEffort);
  ASSERT_EQ(run.node.pods().size(), 3u);
  EXPECT_EQ(run.node.pods()[2].restarts, 1);
  EXPECT_EQ(run.node.pods()[2].phase, SimulatedPod::Phase::kRunning);
  EXPECT_LT(run.node.pods()[2].level_at(run.node.now()), 0x1p31) << "and does not burst again";
}

TEST(SimulatedNode, APodAtItsOwnLimitIsKilledAlone) {
  PodPlan pod = bursting_pod(1, 1_GiB, 100_MiB, 5s);
  pod.memory_limit = 2_GiB;
  NodeRun run(std::make_unique<HeadroomAgent>(hard_below(100_MiB)), {pod, steady_pod(2, 1_GiB)});
  const auto events = run.until(60s);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, Kind::kOwnLimit);
  EXPECT_NEAR(seconds(events[0].at), 5 + 10.24, 0.01);
  EXPECT_EQ(run.node.totals().shortages, 0u);
}

TEST(SimulatedNode, KoordinatorKillsBestEffortPodsAt70Percent) {
  NodeRun run(std::make_unique<KoordinatorAgent>(hard_below(100_MiB), 3s), filling_pods());
  const auto events = run.until(300s);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, Kind::kEvicted);
  // 70 % of 16 GiB are 11.2 GiB, 4.2 GiB above the 7 GiB of the begin.
  EXPECT_NEAR(seconds(events[0].at), 10 + 4.2 * 10.24, 1.01);
  EXPECT_EQ(run.node.totals().unneeded, 1u) << "the threshold is far";
}

TEST(SimulatedNode, AJobStartsAnewAndItsWorkIsLost) {
  auto pods = filling_pods();
  pods[2].job = true;
  pods[2].milli_cpu = 2000;
  NodeRun run(std::make_unique<HeadroomAgent>(hard_below(100_MiB)), pods);
  run.until(300s);
  EXPECT_NEAR(run.node.totals().work_lost, 2 * (kCrossing + 10), 0.1);
  const auto& events = run.node.events();
  const auto gone = std::find_if(events.begin(), events.end(),
                                 [](const FleetEvent& each) { return each.kind == Kind::kGone; });
  ASSERT_NE(gone, events.end());
  EXPECT_EQ(gone->plan->runs, 1h) << "all of it again";
}

// The looks that the agent skips decide nothing: with all of them the same pods are evicted, a few
// milliseconds apart at most.
TEST(SimulatedNode, SkippedLooksDecideNothing) {
  WorkloadOptions options{.nodes = 1, .pods_per_node = 12, .length = 1h, .node_memory = 16_GiB};
  options.bursts_per_node_day = 60;
  std::size_t evictions = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    options.seed = seed;
    std::vector<PodPlan> pods;
    for (PodPlan& plan : generate_workload(options))
      if (plan.arrives == Instant{}) pods.push_back(std::move(plan));
    const auto policy = hard_below(500_MiB);
    NodeRun skipping(std::make_unique<HeadroomAgent>(policy), pods);
    NodeRun looking(std::make_unique<HeadroomAgent>(policy, nullptr, true), pods);
    const auto some = skipping.until(1h), all = looking.until(1h);
    EXPECT_LT(skipping.node.totals().looks, looking.node.totals().looks);
    ASSERT_EQ(some.size(), all.size()) << seed;
    for (std::size_t i = 0; i < some.size(); ++i) {
      EXPECT_EQ(some[i].kind, all[i].kind) << seed;
      EXPECT_EQ(some[i].memory_request, all[i].memory_request) << seed;
      EXPECT_NEAR(seconds(some[i].at), seconds(all[i].at), 0.02) << seed;
      evictions += some[i].kind == Kind::kEvicted;
    }
  }
  EXPECT_GT(evictions, 5u);
}

// Levels that are reached are computed; here they are searched for, in small steps.
TEST(SimulatedNode, IntegratesUseAndTimeBelowTheThreshold) {
  NodeRun run(std::make_unique<NoAgent>(),
              {bursting_pod(1, 1_GiB, 512_MiB, 10s, Bytes{15_GiB - 80_MiB})});
  double used = 0, below = 0;
  constexpr double kStep = 0.05;
  for (int i = 0; i < 1200; ++i) {
    run.until(std::chrono::duration_cast<Duration>(kStep * (i + 1) * 1s));
    const Instant at = Instant{} + std::chrono::duration_cast<Duration>(kStep * (i + 1) * 1s);
    used += run.node.pods_working_set(at) * kStep;
    if (run.node.memory_available(at) < (100_MiB).count) below += kStep;
  }
  run.node.end(Instant{} + 60s);
  EXPECT_NEAR(run.node.totals().below_threshold, below, 0.1);
  EXPECT_NEAR(run.node.totals().used / used, 1, 0.01);
}

}  // namespace
}  // namespace headroom::simulate::test
