// SPDX-License-Identifier: Apache-2.0
// PeakForecast, walked through the minutes of a node.
#include "judge/forecast/peak_forecast.h"

#include <gtest/gtest.h>

namespace headroom {
namespace {

constexpr std::size_t kMaximum = 1, kPercentile = 3, kLimits = 4;

struct Minutes {
  PeakForecast forecast;
  int minute = 0;

  void add(std::vector<PeakForecast::PodUse> pods) {
    forecast.add(Instant(std::chrono::minutes(minute++)), pods);
  }
  const PeakForecast::Record& of(std::size_t predictor) const {
    return forecast.records()[predictor];
  }
};

PeakForecast::PodUse pod(std::uint64_t id, Bytes used, std::optional<Bytes> limit = 1_GiB) {
  return {.pod = CgroupId{id}, .used = used, .limit = limit};
}

TEST(PeakForecast, BeginsAfterAQuarterOfAnHour) {
  Minutes node;
  for (int i = 0; i < 14; ++i)
    node.add({pod(1, 100_MiB)});
  EXPECT_FALSE(node.of(kMaximum).forecast);
  node.add({pod(1, 100_MiB)});
  EXPECT_EQ(node.of(kMaximum).forecast, 100.0 * (1 << 20));
  EXPECT_DOUBLE_EQ(*node.of(kPercentile).forecast, 110.0 * (1 << 20));
  EXPECT_DOUBLE_EQ(*node.of(kLimits).forecast, 0.9 * 0x1p30);
}

TEST(PeakForecast, IsComparedWithTheHourAfterIt) {
  Minutes node;
  for (int i = 0; i < 15; ++i)
    node.add({pod(1, 100_MiB)});  // forecast: 100 and 110 MiB
  for (int i = 0; i < 59; ++i)
    node.add({pod(1, i == 30 ? 105_MiB : 100_MiB)});
  EXPECT_EQ(node.of(kMaximum).held + node.of(kMaximum).exceeded, 0u) << "the hour is not over";
  node.add({pod(1, 100_MiB)});
  EXPECT_EQ(node.of(kMaximum).exceeded, 1u);
  EXPECT_EQ(node.of(kPercentile).held, 1u);
  EXPECT_NEAR(node.of(kMaximum).error_sum, -5.0 / 105, 1e-9);
  EXPECT_NEAR(node.of(kPercentile).error_sum, 5.0 / 105, 1e-9);
}

TEST(PeakForecast, TakesOneSampleAMinute) {
  PeakForecast forecast;
  for (int second = 0; second < 14 * 60; ++second)
    forecast.add(Instant(std::chrono::seconds(second)), std::vector{pod(1, 100_MiB)});
  EXPECT_FALSE(forecast.records()[kMaximum].forecast);
}

TEST(PeakForecast, APodThatIsGoneCountsNoLonger) {
  Minutes node;
  for (int i = 0; i < 20; ++i)
    node.add({pod(1, 100_MiB), pod(2, 300_MiB)});
  EXPECT_DOUBLE_EQ(*node.of(kPercentile).forecast, 440.0 * (1 << 20));
  node.add({pod(1, 100_MiB)});
  EXPECT_DOUBLE_EQ(*node.of(kPercentile).forecast, 110.0 * (1 << 20));
}

TEST(PeakForecast, UnknownIsNotZero) {
  Minutes node;
  for (int i = 0; i < 20; ++i)
    node.add({pod(1, 100_MiB, std::nullopt)});
  EXPECT_TRUE(node.of(kMaximum).forecast);
  EXPECT_FALSE(node.of(kLimits).forecast) << "a pod without a limit";
  node.add({pod(1, 100_MiB), {.pod = CgroupId{2}, .used = std::nullopt, .limit = std::nullopt}});
  EXPECT_FALSE(node.of(kMaximum).forecast) << "a pod whose use is unknown";
}

// The daemon saves the state: after a restart nothing is missing.
TEST(PeakForecast, ContinuesFromItsState) {
  Minutes node, resumed;
  for (int i = 0; i < 40; ++i) {
    node.add({pod(1, Bytes{(100_MiB).count + i})});
    resumed.add({pod(1, Bytes{(100_MiB).count + i})});
    resumed.forecast = PeakForecast(PeakForecast::State(resumed.forecast.state()));
  }
  for (int i = 0; i < 60; ++i) {
    node.add({pod(1, 90_MiB)});
    resumed.add({pod(1, 90_MiB)});
  }
  EXPECT_EQ(resumed.of(kMaximum).forecast, node.of(kMaximum).forecast);
  EXPECT_GT(node.of(kMaximum).exceeded + node.of(kMaximum).held, 10u);
  EXPECT_EQ(resumed.of(kMaximum).held, node.of(kMaximum).held);
}

TEST(PeakForecast, AStateOfOtherPredictorsIsNotUsed) {
  Minutes node;
  for (int i = 0; i < 20; ++i)
    node.add({pod(1, 100_MiB)});
  PeakForecast::State state = node.forecast.state();
  state.records.pop_back();
  const PeakForecast fresh(std::move(state));
  EXPECT_EQ(fresh.records().size(), kPeakPredictors.size());
  EXPECT_FALSE(fresh.records()[kMaximum].forecast);
}

TEST(PeakForecast, AGapBeginsAnew) {
  Minutes node;
  for (int i = 0; i < 20; ++i)
    node.add({pod(1, 100_MiB)});
  node.minute += 10;
  node.add({pod(1, 100_MiB)});
  EXPECT_FALSE(node.of(kMaximum).forecast);
}

}  // namespace
}  // namespace headroom
