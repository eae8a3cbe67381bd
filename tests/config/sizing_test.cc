// SPDX-License-Identifier: Apache-2.0
// The kubelet's keys and flags for what decides about the cgroups of every pod.
#include "config/files.h"
#include "config/rows.h"

#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::config {
namespace {

using Bad = test::BadFile;
using test::load_text;
using test::load_with;
using test::said;
using Lines = std::vector<std::string>;
using Reservation = MemoryQos::Reservation;

TEST(SizingConfig, DefaultsAreTheKubelets) {
  const auto config = load_text("maxPods: 1\n");
  ASSERT_TRUE(config);
  EXPECT_TRUE(config->sizing.cpu_quota);
  EXPECT_EQ(config->sizing.cpu_period, std::chrono::milliseconds(100));
  EXPECT_EQ(config->sizing.pids_limit, std::nullopt);
  EXPECT_EQ(config->sizing.swap, SwapBehavior::kNoSwap);
  EXPECT_EQ(config->sizing.memory_qos, MemoryQos{}) << "neither protected nor throttled";
  EXPECT_TRUE(config->sizing.oom_kills_group);
}

TEST(SizingConfig, IsReadFromTheKubeletsKeys) {
  const auto config = load_text(R"(cpuCFSQuota: false
cpuCFSQuotaPeriod: 20ms
podPidsLimit: 512
memoryThrottlingFactor: 0.75
memoryReservationPolicy: TieredReservation
memorySwap: {swapBehavior: LimitedSwap}
singleProcessOOMKill: true
featureGates: {MemoryQoS: true, CustomCPUCFSQuotaPeriod: true}
headroom: {slices: {weights: quadratic}}
)");
  ASSERT_TRUE(config) << said(config)[0];
  EXPECT_EQ(config->sizing.weights, WeightFormula::kQuadratic);
  EXPECT_FALSE(config->sizing.cpu_quota);
  EXPECT_EQ(config->sizing.cpu_period, std::chrono::milliseconds(20));
  EXPECT_EQ(config->sizing.pids_limit, Tasks{512});
  EXPECT_EQ(config->sizing.memory_qos.reservation, Reservation::kTiered);
  EXPECT_EQ(config->sizing.memory_qos.throttling_factor, 0.75);
  EXPECT_EQ(config->sizing.swap, SwapBehavior::kLimitedSwap);
  EXPECT_FALSE(config->sizing.oom_kills_group);
}

TEST(SizingConfig, MemoryQosOf137NeedsNoGate) {
  const auto config =
      load_text("memoryReservationPolicy: TieredReservation\nmemoryThrottlingFactor: 0.9\n");
  ASSERT_TRUE(config) << said(config)[0];
  EXPECT_EQ(config->sizing.memory_qos, (MemoryQos{Reservation::kTiered, 0.9}));
  const auto unset = load_text("memoryReservationPolicy: None\nmemoryThrottlingFactor: null\n");
  ASSERT_TRUE(unset) << said(unset)[0];
  EXPECT_EQ(unset->sizing.memory_qos, (MemoryQos{Reservation::kNone, std::nullopt}));
}

TEST(SizingConfig, FlagsOverrideTheFile) {
  const auto config = load_with(
      "podPidsLimit: 7\ncpuCFSQuotaPeriod: 5ms\nfeatureGates: {CustomCPUCFSQuotaPeriod: true}\n",
      {"--pod-max-pids=-1", "--cpu-cfs-quota=false", "--cpu-cfs-quota-period=10ms"});
  ASSERT_TRUE(config) << to_string(config.error()[0]);
  EXPECT_EQ(config->sizing.pids_limit, std::nullopt);
  EXPECT_FALSE(config->sizing.cpu_quota);
  EXPECT_EQ(config->sizing.cpu_period, std::chrono::milliseconds(10));
}

TEST(SizingConfig, WithAKubeletUnknownValuesAreIgnored) {
  const auto config = load_text(
      "memorySwap: {swapBehavior: UnlimitedSwap}\npodPidsLimit: 9\n"
      "headroom: {kubernetes: {kubelet: {url: https://127.0.0.1:10250}}}\n");
  ASSERT_TRUE(config) << said(config)[0];
  EXPECT_EQ(config->sizing.pids_limit, std::nullopt);
  EXPECT_EQ(config->sizing.swap, SwapBehavior::kNoSwap);
}

class BadSizing : public testing::TestWithParam<Bad> {};

TEST_P(BadSizing, ReportsAllErrorsAtOnce) {
  EXPECT_EQ(said(load_text(GetParam().text)), GetParam().diagnostics);
}

const Bad kBad[] = {
    {"types",
     "cpuCFSQuota: 1\npodPidsLimit: many\nmemoryThrottlingFactor: \"0.5\"\nmemorySwap: no\n",
     {"3: cpuCFSQuota: expected true or false, found the number 1",
      "4: podPidsLimit: expected a whole number from -9223372036854775808 to 9223372036854775807, "
      "found the string \"many\"",
      "5: memoryThrottlingFactor: expected a number such as 0.9, found the string \"0.5\"",
      "6: memorySwap: expected a map, found the boolean no"}},
    {"values",
     "cpuCFSQuotaPeriod: 10ms\nmemoryThrottlingFactor: 1.5\n"
     "memoryReservationPolicy: Tiered\nmemorySwap: {swapBehavior: Unlimited, x: y}\n",
     {"3: cpuCFSQuotaPeriod: invalid configuration: cpuCFSQuotaPeriod (--cpu-cfs-quota-period) "
      "10ms requires feature gate CustomCPUCFSQuotaPeriod",
      "4: memoryThrottlingFactor: invalid configuration: memoryThrottlingFactor 1.5 must be "
      "greater than 0 and less than or equal to 1.0",
      "5: memoryReservationPolicy: invalid configuration: option \"Tiered\" specified for "
      "memoryReservationPolicy. Valid options are \"None\" or \"TieredReservation\"",
      "6: memorySwap.swapBehavior: invalid configuration: memorySwap.swapBehavior \"Unlimited\" "
      "must be one of: \"\", \"LimitedSwap\" or \"NoSwap\""}},
};
INSTANTIATE_TEST_SUITE_P(Bad, BadSizing, testing::ValuesIn(kBad), test::RowName{});

TEST(SizingConfig, InvalidFlagsAreReported) {
  const auto config =
      load_with("", {"--cpu-cfs-quota=maybe", "--cpu-cfs-quota-period=2s", "--pod-max-pids=x"});
  ASSERT_FALSE(config);
  Lines lines;
  for (const Diagnostic& diagnostic : config.error())
    lines.push_back(to_string(diagnostic));
  EXPECT_EQ(lines, (Lines{"--cpu-cfs-quota: expected true or false, found \"maybe\"",
                          "--pod-max-pids: expected a whole number, found \"x\"",
                          "--cpu-cfs-quota-period: cpuCFSQuotaPeriod: invalid configuration: "
                          "cpuCFSQuotaPeriod (--cpu-cfs-quota-period) 2s requires feature gate "
                          "CustomCPUCFSQuotaPeriod"}));
}

}  // namespace
}  // namespace headroom::config
