// SPDX-License-Identifier: Apache-2.0
// Forecasts, scored when what they predicted has happened.
#include "report/reporter.h"
#include "support/story.h"

#include <numeric>

#include <gtest/gtest.h>

namespace headroom::report {
namespace {

using namespace headroom::test;
using namespace std::chrono_literals;

class ForecastAccuracyTest : public testing::Test {
 protected:
  static Policy policy() {
    Policy policy;
    policy.thresholds = {memory_below(1_GiB)};
    return policy;
  }
  void step(std::int64_t ms, std::optional<Bytes> available) {
    story.step(ms, available, Outcome::Result::kDryRun);
    score.update(story.policy, story.verdict, at_ms(ms), counters);
  }
  std::uint64_t scored() const {
    const auto& counts = counters.forecast_error[0].counts;
    return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  }
  Story story{policy()};
  ForecastAccuracy score;
  Counters counters;
};

TEST_F(ForecastAccuracyTest, ASteadyFillIsPredictedPrecisely) {
  for (std::int64_t ms = 0; ms <= 30'100; ms += 100)
    step(ms, 4_GiB - Bytes{ms * ((3 << 20) / 30 * 1024 / 1000)});
  step(30'200, 1000_MiB);
  EXPECT_GE(scored(), 25u);
  EXPECT_EQ(counters.unpredicted_crossings[0], 0u);
  EXPECT_LT(counters.forecast_error[0].sum / static_cast<double>(scored()), 15.0);
}

TEST_F(ForecastAccuracyTest, AStepIsNotPredicted) {
  for (std::int64_t ms = 0; ms <= 5'000; ms += 100)
    step(ms, 2_GiB);
  step(5'100, 100_MiB);
  EXPECT_EQ(scored(), 0u);
  EXPECT_EQ(counters.unpredicted_crossings[0], 1u);
  step(5'200, 100_MiB);
  EXPECT_EQ(counters.unpredicted_crossings[0], 1u) << "a crossing is one, however long it lasts";
}

TEST_F(ForecastAccuracyTest, AThresholdCrossedAtTheStartOrUnknownIsNotCounted) {
  step(0, 100_MiB);
  step(100, std::nullopt);
  step(200, 100_MiB);
  EXPECT_EQ(counters.unpredicted_crossings[0], 0u);
}

}  // namespace
}  // namespace headroom::report
