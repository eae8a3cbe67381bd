// SPDX-License-Identifier: Apache-2.0
// Predictors of a node's peak, and their measurement on series whose next hour is known.
#include "judge/forecast/peak_predictor.h"

#include "simulate/predict/evaluation.h"

#include <cmath>

#include <gtest/gtest.h>

namespace headroom {
namespace {

using Samples = std::vector<double>;

TEST(Percentile, IsTheNearestRank) {
  Samples samples;
  for (int i = 100; i >= 1; --i)
    samples.push_back(i);
  EXPECT_EQ(percentile(samples, 0.98), 98);
  EXPECT_EQ(percentile(samples, 1), 100);
  EXPECT_EQ(percentile(samples, 0), 1);
  EXPECT_EQ(percentile({}, 0.5), std::nullopt);
}

struct Node {
  std::vector<Samples> pods;
  Samples node;
  double limits = 0;

  std::optional<double> predict(PeakPredictor predictor, const PredictorOptions& options = {}) {
    std::vector<std::span<const double>> windows(pods.begin(), pods.end());
    return predictor({.pods = windows, .node = node, .limits = limits}, options);
  }
};

TEST(PeakPredictor, FollowsItsFormula) {
  // Two pods whose peaks are not at the same time.
  Node node{.pods = {{1, 1, 1, 3}, {5, 1, 1, 1}}, .node = {6, 2, 2, 4}, .limits = 20};
  EXPECT_DOUBLE_EQ(*node.predict(predict_percentile), 8 * 1.1);
  EXPECT_DOUBLE_EQ(*node.predict(predict_sigma, {.sigmas = 2}), 3.5 + 2 * std::sqrt(2.75));
  EXPECT_DOUBLE_EQ(*node.predict(predict_maximum, {.sigmas = 2}), 8) << "the pods' sum is greater";
  EXPECT_DOUBLE_EQ(*node.predict(predict_maximum, {.sigmas = 3}), 3.5 + 3 * std::sqrt(2.75));
  EXPECT_DOUBLE_EQ(*node.predict(predict_limits), 18);
  EXPECT_DOUBLE_EQ(*node.predict(predict_drift, {.limit_margin = 0.1}), 8 + 2);
  Node growing{.pods = {{1, 1, 3, 3}}, .node = {1, 1, 3, 3}, .limits = 10};
  EXPECT_DOUBLE_EQ(*growing.predict(predict_drift, {.limit_margin = 0, .drift = 0.5}), 3 + 1);
}

TEST(PeakPredictor, NeverExceedsTheLimits) {
  Node node{.pods = {{9, 10}}, .node = {9, 10}, .limits = 10};
  for (const NamedPredictor& each : kPeakPredictors)
    EXPECT_LE(*node.predict(each.predict), 10) << each.name;
}

TEST(PeakPredictor, UnknownIsNotZero) {
  Node empty;
  for (const NamedPredictor& each : kPeakPredictors)
    EXPECT_EQ(empty.predict(each.predict), std::nullopt) << each.name;
}

std::shared_ptr<const simulate::MemorySeries> series(double (*value)(double minute)) {
  auto made = std::make_shared<simulate::MemorySeries>();
  made->limit = 1;
  for (int minute = 0; minute <= 600; ++minute) {
    made->at.push_back(std::chrono::minutes(minute));
    made->values.push_back(value(minute));
  }
  return made;
}

TEST(Evaluation, OfSteadyPodsEveryPredictorIsRight) {
  const auto found = simulate::evaluate_predictors({series([](double) { return 0.4; })},
                                                   {.nodes = 2, .pods_per_node = 3});
  EXPECT_GT(found.predictions, 50u);
  EXPECT_NEAR(found.oracle, 0.6, 1e-9);
  for (const simulate::PredictorScore& score : found.scores)
    EXPECT_EQ(score.violations, 0) << score.name;
  EXPECT_NEAR(found.scores[3].savings, 1 - 0.44, 1e-9) << "percentile";
}

TEST(Evaluation, OfGrowingPodsThoseThatLookBackAreTooLow) {
  const auto found = simulate::evaluate_predictors({series([](double t) { return t / 1200; })},
                                                   {.nodes = 1, .pods_per_node = 1});
  const auto& maximum = found.scores[1];
  EXPECT_EQ(maximum.name, "maximum");
  EXPECT_GT(found.scores[4].violations, -1);
  EXPECT_EQ(found.scores[4].violations, 0) << "90 % of the limits";
  EXPECT_GT(found.oracle, maximum.savings - 0.1);
  EXPECT_GT(found.scores[2].savings, 0);
}

TEST(Evaluation, HalvesHaveNoPodInCommonAndSeriesWithoutLimitDoNotCount) {
  auto half = series([](double) { return 0.5; });
  auto quarter = series([](double) { return 0.25; });
  auto unlimited = std::make_shared<simulate::MemorySeries>(*half);
  unlimited->limit = 0;
  auto brief = std::make_shared<simulate::MemorySeries>(*half);
  brief->at.resize(30);
  brief->values.resize(30);
  simulate::EvaluationOptions options{.nodes = 1, .pods_per_node = 1};
  options.part = simulate::TracePart::kFirstHalf;
  const auto first = evaluate_predictors({half, quarter, unlimited, brief}, options);
  options.part = simulate::TracePart::kSecondHalf;
  const auto second = evaluate_predictors({half, quarter, unlimited, brief}, options);
  EXPECT_NEAR(first.oracle, 0.5, 1e-9);
  EXPECT_NEAR(second.oracle, 0.75, 1e-9);
  EXPECT_EQ(first.without_limit, 1u);
  EXPECT_EQ(first.too_short, 1u);
  EXPECT_EQ(first.pods, 1u);
}

TEST(Evaluation, WithoutEnoughSamplesThereIsNoPrediction) {
  EXPECT_EQ(simulate::evaluate_predictors({}, {}).predictions, 0u);
  const auto found = simulate::evaluate_predictors({series([](double) { return 0.4; })},
                                                   {.history = std::chrono::hours(20)});
  EXPECT_EQ(found.predictions, 0u);
  EXPECT_EQ(found.pods, 1u);
}

}  // namespace
}  // namespace headroom
