// SPDX-License-Identifier: Apache-2.0
// evaluate_predictors(): how much each peak predictor would save, and how often it is wrong, on
// recorded memory use.
//
// Pods are drawn onto nodes. At each point in time a predictor sees the last hour of the node, and
// its answer is compared with the peak of the next hour.
#pragma once

#include "judge/forecast/peak_predictor.h"
#include "simulate/workload/pod_plan.h"

#include <headroom/units.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace headroom::simulate {

// Which pods count: constants are tuned with one half, and measured with the other.
enum class TracePart : std::uint8_t { kAll, kFirstHalf, kSecondHalf };

struct EvaluationOptions {
  std::size_t nodes = 20, pods_per_node = 15;
  Duration history = std::chrono::hours(1), horizon = std::chrono::hours(1);
  Duration step = std::chrono::minutes(1), period = std::chrono::minutes(12);
  std::uint64_t seed = 1;
  TracePart part = TracePart::kAll;
  PredictorOptions predictors{};
};

struct PredictorScore {
  std::string name;
  double savings = 0;     // share of the limits that the prediction leaves free
  double violations = 0;  // share of the predictions that the next peak exceeds
  double time_above = 0;  // share of the time in which use exceeds the prediction
  double worst = 0;       // the most by which it does, as a share of the limits
};

struct Evaluation {
  double oracle = 0;            // savings of one that knows the next peak
  std::size_t predictions = 0;  // of each predictor
  std::size_t pods = 0;         // that count
  std::size_t too_short = 0;  // that do not: their series are shorter than the others' common span
  std::size_t without_limit = 0;  // that do not
  std::vector<PredictorScore> scores;
};

// Without predictions if too few pods count.
Evaluation evaluate_predictors(const std::vector<std::shared_ptr<const MemorySeries>>& series,
                               const EvaluationOptions& options);

}  // namespace headroom::simulate
