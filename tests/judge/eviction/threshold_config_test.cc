// SPDX-License-Identifier: Apache-2.0
// The list of thresholds: defaults, derivation, and every error at once.
#include "judge/eviction/threshold/threshold_config.h"

#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom {
namespace {

using namespace std::chrono_literals;

std::vector<Threshold> built(const ThresholdMaps& maps) {
  auto thresholds = build_thresholds(maps);
  if (thresholds) return *thresholds;
  for (const auto& error : thresholds.error())
    ADD_FAILURE() << error.map << " " << error.key << ": " << error.what;
  return {};
}

std::vector<Signal> signals_of(const std::vector<Threshold>& thresholds) {
  std::vector<Signal> signals;
  for (const auto& each : thresholds)
    signals.push_back(each.signal);
  return signals;
}

std::string text_of(const Threshold& threshold) {
  const auto* quantity = std::get_if<Quantity>(&threshold.value);
  return quantity ? quantity->canonical() : "a share";
}

const std::vector<Signal> kDefaults{Signal::kMemoryAvailable, Signal::kNodeFsAvailable,
                                    Signal::kNodeFsInodesFree, Signal::kImageFsAvailable,
                                    Signal::kImageFsInodesFree};

TEST(ThresholdConfig, DefaultsApplyOnlyIfNothingIsConfigured) {
  EXPECT_EQ(signals_of(built({})), kDefaults);
  EXPECT_EQ(signals_of(built({.hard = StringMap{}})), std::vector<Signal>{})
      << "an empty map is something said";
  EXPECT_EQ(signals_of(built({.hard = StringMap{{"pid.available", "10%"}}})),
            std::vector<Signal>{Signal::kPidAvailable})
      << "one signal makes the others' defaults vanish";
  const ThresholdMaps soft{.hard = {},
                           .soft = {{"memory.available", "1Gi"}},
                           .soft_grace = {{"memory.available", "1m"}}};
  EXPECT_EQ(built(soft).size(), kDefaults.size() + 1) << "a soft one does not";
}

TEST(ThresholdConfig, MergingKeepsTheDefaultsOfOtherSignals) {
  const auto merged =
      built({.hard = StringMap{{"memory.available", "1Gi"}, {"imagefs.available", "0%"}},
             .merge_defaults = true});
  EXPECT_EQ(signals_of(merged),
            (std::vector{Signal::kMemoryAvailable, Signal::kNodeFsAvailable,
                         Signal::kNodeFsInodesFree, Signal::kImageFsInodesFree}))
      << "0% turns a default off";
  EXPECT_EQ(text_of(merged.at(0)), "1Gi") << "what is said wins";
}

TEST(ThresholdConfig, EnforcingPodsDerivesTheAllocatableThreshold) {
  ThresholdMaps maps{.hard = StringMap{{"memory.available", "1Gi"}},
                     .soft = {{"memory.available", "2Gi"}},
                     .soft_grace = {{"memory.available", "90s"}},
                     .min_reclaim = {{"memory.available", "5"}}};
  EXPECT_EQ(built(maps).size(), 2U) << "not enforced";

  maps.enforce_node_allocatable = {"pods", "system-reserved"};
  const auto thresholds = built(maps);
  ASSERT_EQ(thresholds.size(), 3U) << "of the hard one alone";
  const Threshold& derived = thresholds.back();
  EXPECT_EQ(derived.signal, Signal::kAllocatableMemoryAvailable);
  EXPECT_EQ(text_of(derived), "1Gi");
  EXPECT_TRUE(derived.hard());
  EXPECT_TRUE(derived.min_reclaim) << "its source's";

  maps.soft_grace = {{"memory.available", "0"}};
  EXPECT_EQ(built(maps).size(), 4U) << "a soft threshold without grace is a hard one";
}

TEST(ThresholdConfig, MinimumReclaimGoesToHardAndSoftAlike) {
  const auto thresholds = built({.hard = StringMap{{"nodefs.available", "1Gi"}},
                                 .soft = {{"nodefs.available", "2Gi"}},
                                 .soft_grace = {{"nodefs.available", "1m30s"}},
                                 .min_reclaim = {{"nodefs.available", "500Mi"}}});
  ASSERT_EQ(thresholds.size(), 2U);
  EXPECT_EQ(thresholds[0].grace, 0s);
  EXPECT_EQ(thresholds[1].grace, 90s);
  for (const auto& each : thresholds)
    EXPECT_TRUE(each.min_reclaim);
}

TEST(ThresholdConfig, ADisabledThresholdNeedsNoGrace) {
  EXPECT_TRUE(built({.hard = StringMap{}, .soft = {{"memory.available", "0%"}}}).empty());
  EXPECT_TRUE(built({.hard = StringMap{}, .soft_grace = {{"memory.available", "1m"}}}).empty());
}

TEST(ThresholdConfig, ReportsEveryErrorAtOnce) {
  const auto thresholds = build_thresholds(
      {.hard = StringMap{{"memory.free", "1Gi"}, {"nodefs.available", "101%"}},
       .soft = {{"memory.available", "1GB"}, {"pid.available", "10%"}},
       .soft_grace = {{"memory.available", "5"}, {"imagefs.available", "-1s"}, {"x", "1m"}},
       .min_reclaim = {{"nodefs.available", "0%"}, {"nodefs.inodesFree", "-1"}}});
  ASSERT_FALSE(thresholds);
  const std::string signals =
      "; the signals are memory.available, allocatableMemory.available, nodefs.available, "
      "nodefs.inodesFree, imagefs.available, imagefs.inodesFree, containerfs.available, "
      "containerfs.inodesFree, pid.available, swap.available";
  const std::string right_value = "; write a quantity such as 100Mi or a percentage such as 10%";
  const std::string right_grace = "; write a duration such as 1m30s";
  const std::vector<ThresholdError> expected{
      {"evictionHard", "memory.free", "unsupported eviction signal memory.free" + signals},
      {"evictionHard", "nodefs.available",
       "eviction percentage threshold nodefs.available must be <= 100%: 101%" + right_value},
      {"evictionSoft", "memory.available",
       "quantities must match the regular expression "
       "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'" +
           right_value},
      {"evictionSoftGracePeriod", "imagefs.available",
       "invalid eviction grace period specified: -1s, must be a positive value" + right_grace},
      {"evictionSoftGracePeriod", "memory.available",
       "time: missing unit in duration \"5\"" + right_grace},
      {"evictionSoftGracePeriod", "x", "unsupported eviction signal x" + signals},
      {"evictionMinimumReclaim", "nodefs.available",
       "eviction percentage minimum reclaim nodefs.available must be positive: 0%" + right_value},
      {"evictionMinimumReclaim", "nodefs.inodesFree",
       "negative eviction minimum reclaim specified for nodefs.inodesFree" + right_value},
      {"evictionSoft", "pid.available",
       "grace period must be specified for the soft eviction threshold pid.available; add "
       "pid.available to evictionSoftGracePeriod, such as 1m30s"},
  };
  ASSERT_EQ(thresholds.error().size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(thresholds.error()[i].map, expected[i].map);
    EXPECT_EQ(thresholds.error()[i].key, expected[i].key);
    EXPECT_EQ(thresholds.error()[i].what, expected[i].what);
  }
}

}  // namespace
}  // namespace headroom
