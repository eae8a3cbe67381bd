// SPDX-License-Identifier: Apache-2.0
// A window's waits, split by cause: tables of what the kernel counted, and what follows from it.
#include "judge/waits/cpu_waits.h"

#include <cmath>
#include <map>
#include <numeric>
#include <string>

#include <gtest/gtest.h>

namespace headroom {
namespace {

constexpr Nanoseconds kSecond = 1e9;
constexpr Nanoseconds kWindow = 5 * kSecond;

// What a CPU did, in percent of the window.
struct Cpu100 {
  double idle = 0, interrupts = 0;
};

std::vector<std::optional<CpuWindow>> node(std::initializer_list<Cpu100> cpus) {
  std::vector<std::optional<CpuWindow>> windows;
  for (const Cpu100& cpu : cpus)
    windows.push_back(CpuWindow{.idle = cpu.idle / 100 * kWindow,
                                .interrupts = cpu.interrupts / 100 * kWindow,
                                .tasks = (100 - cpu.idle - cpu.interrupts) / 100 * kWindow});
  return windows;
}

// By cause, in percent of the window, without zeros.
using Percent = std::map<std::string, double>;

Percent percent(const WindowWaits& waits) {
  Percent shown;
  for (std::size_t i = 0; i < kCpuWaitCauses; ++i)
    if (waits[i] >= kWindow * 0.0005)
      shown[std::string(kCpuWaitCauseNames[i])] = std::round(waits[i] / kWindow * 1000) / 10;
  return shown;
}

struct Case {
  const char* what;
  double waited = 0, quota = 0, parent_quota = 0;  // percent of the window
  std::optional<CpuSet> cpus{};
  std::optional<double> share{};
  std::vector<std::optional<CpuWindow>> of_node{};
  std::vector<Runner> others{};  // ran: in percent of the window of one CPU
  Percent expected{};
};

TEST(CpuWaits, AreSplitByCause) {
  const CpuSet all{0, 1, 2, 3};
  const auto idle = node({{100, 0}, {100, 0}, {100, 0}, {90, 0}});
  const auto busy = node({{0, 0}, {0, 0}, {0, 0}, {0, 0}});
  for (const Case& c : {
           Case{.what = "quota of 10 % on an idle node",
          .waited = 90,
          .quota = 90,
          .cpus = all,
          .share = 1,
          .of_node = idle,
          .expected = {{"quota", 90}}},
           Case{.what = "quota, and the counters differ a little",
           .waited = 90,
           .quota = 97,
           .cpus = all,
           .share = 1,
           .of_node = idle,
           .expected = {{"quota", 90}}},
           Case{.what = "a cgroup above the pod has the quota",
           .waited = 80,
           .parent_quota = 80,
           .cpus = all,
           .share = 1,
           .of_node = idle,
           .expected = {{"parent_quota", 80}}},
           Case{.what = "nested quotas",
           .waited = 80,
           .quota = 50,
           .parent_quota = 60,
           .cpus = all,
           .share = 1,
           .of_node = idle,
           .expected = {{"quota", 50}, {"parent_quota", 30}}},
           Case{.what = "pinned to one CPU, which is full, on a half-idle node",
           .waited = 100,
           .cpus = CpuSet{0},
           .share = 0.5,
           .of_node = node({{0, 0}, {100, 0}, {0, 0}, {100, 0}}),
           .others = {{1, 100, 0.5}},
           .expected = {{"cpuset", 100}}},
           Case{.what = "pinned, and the others are half idle each: one is idle three quarters of "
                        "the time",
           .waited = 100,
           .cpus = CpuSet{0, 1},
           .share = 0.5,
           .of_node = node({{0, 0}, {0, 0}, {50, 0}, {50, 0}}),
           .others = {{1, 100, 0.5}},
           .expected = {{"cpuset", 75}, {"node", 25}}},
           Case{.what = "pinned on a full node: no other CPU would have been free",
           .waited = 100,
           .cpus = CpuSet{0},
           .share = 0.5,
           .of_node = busy,
           .others = {{1, 100, 0.5}},
           .expected = {{"node", 100}}},
           Case{.what = "quota and a full pool",
           .waited = 95,
           .quota = 60,
           .cpus = CpuSet{0},
           .share = 0.5,
           .of_node = node({{0, 0}, {100, 0}, {100, 0}, {100, 0}}),
           .others = {{1, 100, 0.5}},
           .expected = {{"quota", 60}, {"cpuset", 35}}},
           Case{.what = "equal weights on a full node",
           .waited = 50,
           .cpus = all,
           .share = 0.25,
           .of_node = busy,
           .others = {{1, 200, 0.25}, {2, 200, 0.25}},
           .expected = {{"node", 50}}},
           Case{.what = "weight 1 against 10000 on a full node",
           .waited = 99,
           .cpus = all,
           .share = 0.0001,
           .of_node = busy,
           .others = {{1, 400, 0.9999}},
           .expected = {{"weight", 99}}},
           Case{.what = "the larger weight waits no longer than its share lets it",
           .waited = 2,
           .cpus = all,
           .share = 0.9999,
           .of_node = busy,
           .others = {{1, 400, 0.0001}},
           .expected = {{"node", 2}}},
           Case{.what = "half the weight of half of what ran",
           .waited = 80,
           .cpus = all,
           .share = 0.1,
           .of_node = busy,
           .others = {{1, 200, 0.2}, {2, 200, 0.1}},
           .expected = {{"weight", 20}, {"node", 60}}},
           Case{.what = "interrupts have a third of its CPU",
           .waited = 60,
           .cpus = CpuSet{0},
           .share = 0.5,
           .of_node = node({{0, 33}, {0, 0}, {0, 0}, {0, 0}}),
           .others = {{1, 60, 0.5}},
           .expected = {{"interrupts", 19.8}, {"node", 40.2}}},
           Case{.what = "short processes on an idle node",
           .waited = 30,
           .cpus = all,
           .share = 0.5,
           .of_node = node({{80, 0}, {70, 0}, {75, 0}, {80, 0}}),
           .expected = {{"placement", 10}, {"node", 20}}},
           Case{.what = "the CPUs it may use are unknown",
           .waited = 50,
           .quota = 20,
           .cpus = std::nullopt,
           .share = 0.5,
           .of_node = busy,
           .expected = {{"quota", 20}, {"unknown", 30}}},
           Case{.what = "the times of CPUs are unknown",
           .waited = 50,
           .quota = 20,
           .cpus = all,
           .share = 0.5,
           .of_node = {},
           .expected = {{"quota", 20}, {"unknown", 30}}},
           Case{.what = "its weight is unknown",
           .waited = 50,
           .cpus = all,
           .share = std::nullopt,
           .of_node = busy,
           .expected = {{"unknown", 50}}},
           Case{.what = "it did not wait",
           .waited = 0,
           .quota = 30,
           .cpus = all,
           .share = 1,
           .of_node = busy,
           .expected = {}},
       }) {
    std::vector<Runner> others = c.others;
    for (Runner& each : others)
      each.ran *= kWindow / 100;
    CpuWindows windows(c.of_node);
    const WaitingGroup group{.window = kWindow,
                             .waited = c.waited / 100 * kWindow,
                             .quota = c.quota / 100 * kWindow,
                             .parent_quota = c.parent_quota / 100 * kWindow,
                             .cpus = c.cpus ? &windows.of(*c.cpus) : nullptr,
                             .share = c.share};
    const WindowWaits waits = attribute(group, RunnersByShare(others, 0));
    EXPECT_EQ(percent(waits), c.expected) << c.what;
    // Nothing is lost and nothing is added.
    EXPECT_NEAR(std::accumulate(waits.begin(), waits.end(), 0.0), group.waited, 1) << c.what;
  }
}

TEST(CpuWaits, AnOfflineCpuIsNeitherIdleNorBusy) {
  auto cpus = node({{0, 0}, {0, 0}});
  cpus.insert(cpus.begin() + 1, std::nullopt);
  CpuWindows windows(cpus);
  const WaitingGroup group{
      .window = kWindow, .waited = kWindow, .cpus = &windows.of({0, 1}), .share = 0.5};
  EXPECT_EQ(percent(attribute(group, RunnersByShare({}, 0))), (Percent{{"node", 100}}));
}

TEST(CpuWaits, WhatTheKernelRanHasNoWeight) {
  // kswapd had the CPU for three quarters of the time, a pod of a larger weight for one.
  const RunnersByShare runners({{0, 0.25 * kWindow, 1}}, 0.75 * kWindow);
  EXPECT_NEAR(runners.lost_to_larger(0.0001), 0.25, 0.001);
  EXPECT_NEAR(runners.lost_to_larger(1), 0, 1e-9);
}

TEST(CpuWaits, TheComparisonIsTheSumOverAllRunners) {
  std::vector<Runner> runners;
  for (std::size_t i = 0; i < 50; ++i)
    runners.push_back({i, static_cast<double>((i * 37) % 11) * 1e8,
                       0.001 * static_cast<double>(1 + (i * 17) % 23)});
  const RunnersByShare by_share(runners, 1e9);
  for (const double share : {0.0005, 0.001, 0.004, 0.0115, 0.023, 0.5}) {
    double lost = 0, all = 1e9;
    for (const Runner& each : runners) {
      all += each.ran;
      if (each.share > share) lost += each.ran * (1 - share / each.share);
    }
    EXPECT_NEAR(by_share.lost_to_larger(share), lost / all, 1e-9) << share;
  }
}

TEST(CpuWaits, TimeAtAQuotaIsThatOfOneRunQueue) {
  struct Quota {
    const char* what;
    ThrottleWindow throttle;
    double expected;  // percent of the window
  };
  for (const Quota& c : {
           Quota{"never throttled", {.ran = kWindow}, 0},
           Quota{"one queue, watched",
                 {.throttled = 0.9 * kWindow,
                 .queues_waited = 0.9 * kWindow,
                 .any_waited = 0.9 * kWindow,
                 .ran = 0.1 * kWindow},
                 90},
           Quota{"four queues at a time, watched",
                 {.throttled = 3 * kWindow,
                 .queues_waited = 3 * kWindow,
                 .any_waited = 0.75 * kWindow,
                 .ran = kWindow},
                 75},
           Quota{"four queues, one after another, watched",
                 {.throttled = 0.8 * kWindow,
                 .queues_waited = 0.8 * kWindow,
                 .any_waited = 0.8 * kWindow,
                 .ran = 0.2 * kWindow},
                 80},
           Quota{"four queues, not watched", {.throttled = 3 * kWindow, .ran = kWindow}, 75},
           Quota{"sleeps most of the time, watched",
                 {.throttled = 0.1 * kWindow,
                 .queues_waited = 0.1 * kWindow,
                 .any_waited = 0.1 * kWindow,
                 .ran = 0.05 * kWindow},
                 10},
           Quota{"the last wait has not ended: the others say how many queues wait at a time",
                 {.throttled = 1.8 * kWindow,
                 .queues_waited = 1.6 * kWindow,
                 .any_waited = 0.8 * kWindow,
                 .ran = 0.2 * kWindow},
                 90},
           Quota{"counters of other moments: never more than the window",
                 {.throttled = 1.3 * kWindow, .queues_waited = kWindow, .any_waited = kWindow},
                 100},
       })
    EXPECT_NEAR(time_at_quota(c.throttle, kWindow) / kWindow * 100, c.expected, 0.01) << c.what;
}

}  // namespace
}  // namespace headroom
