// SPDX-License-Identifier: Apache-2.0
#include "simulate/predict/evaluation.h"

#include "simulate/workload/random.h"

#include <algorithm>
#include <numeric>
#include <span>

namespace headroom::simulate {
namespace {

using Samples = std::vector<double>;

// A series that covers less of the longest one than this does not count.
constexpr double kCoverage = 0.9;

// At equal steps: the value of the latest time that is not after the step. Shares of the limit.
Samples resample(const MemorySeries& series, Duration step, std::size_t count) {
  Samples samples;
  std::size_t place = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Duration at = step * static_cast<std::int64_t>(i);
    while (place + 1 < series.at.size() && series.at[place + 1] <= at)
      ++place;
    samples.push_back(series.values[place] / series.limit);
  }
  return samples;
}

class Evaluator {
 public:
  explicit Evaluator(const EvaluationOptions& options)
      : options_(options),
        history_(static_cast<std::size_t>(options.history / options.step)),
        horizon_(static_cast<std::size_t>(options.horizon / options.step)) {
    for (const NamedPredictor& each : kPeakPredictors)
      found_.scores.push_back({.name = std::string(each.name)});
  }

  Evaluation run(const std::vector<std::shared_ptr<const MemorySeries>>& series) {
    take_pods(series);
    if (pods_.empty() || length_ < history_ + horizon_) return std::move(found_);
    Random random(options_.seed, 9);
    for (std::size_t node = 0; node < options_.nodes; ++node)
      run_node(draw_pods(random));
    return average();
  }

 private:
  void take_pods(const std::vector<std::shared_ptr<const MemorySeries>>& series) {
    Duration longest{0};
    for (const auto& each : series)
      longest = std::max(longest, each->at.back());
    const auto least = std::chrono::duration_cast<Duration>(longest * kCoverage);
    length_ = static_cast<std::size_t>(least / options_.step);
    std::vector<const MemorySeries*> usable;
    for (const auto& each : series)
      if (each->limit <= 0)
        ++found_.without_limit;
      else if (each->at.back() < least)
        ++found_.too_short;
      else
        usable.push_back(each.get());
    const std::size_t half = usable.size() / 2;
    std::span<const MemorySeries* const> part(usable);
    if (options_.part == TracePart::kFirstHalf) part = part.first(half);
    if (options_.part == TracePart::kSecondHalf) part = part.subspan(half);
    for (const MemorySeries* each : part)
      pods_.push_back(resample(*each, options_.step, length_));
    found_.pods = pods_.size();
  }

  // Each pod at most once on a node, as long as there are enough.
  std::vector<const Samples*> draw_pods(Random& random) {
    std::vector<const Samples*> all, drawn;
    for (std::size_t i = 0; i < options_.pods_per_node; ++i) {
      if (all.empty())
        for (const Samples& pod : pods_)
          all.push_back(&pod);
      const auto index = static_cast<std::size_t>(random.next() % all.size());
      drawn.push_back(all[index]);
      all[index] = all.back();
      all.pop_back();
    }
    return drawn;
  }

  void run_node(const std::vector<const Samples*>& pods) {
    Samples node(length_);
    for (const Samples* pod : pods)
      for (std::size_t i = 0; i < length_; ++i)
        node[i] += (*pod)[i];
    const auto period = static_cast<std::size_t>(options_.period / options_.step);
    for (std::size_t at = history_; at + horizon_ <= length_;
         at += std::max<std::size_t>(period, 1))
      predict(pods, node, at);
  }

  void predict(const std::vector<const Samples*>& pods, const Samples& node, std::size_t at) {
    const auto window = [&](const Samples& samples) {
      return std::span<const double>(samples).subspan(at - history_, history_);
    };
    std::vector<std::span<const double>> windows;
    for (const Samples* pod : pods)
      windows.push_back(window(*pod));
    const auto limits = static_cast<double>(pods.size());
    const RecentUse use{.pods = windows, .node = window(node), .limits = limits};
    const auto next = std::span<const double>(node).subspan(at, horizon_);
    const double peak = *std::max_element(next.begin(), next.end());
    found_.oracle += 1 - peak / limits;
    ++found_.predictions;
    for (std::size_t i = 0; i < kPeakPredictors.size(); ++i) {
      const double predicted = *kPeakPredictors[i].predict(use, options_.predictors);
      PredictorScore& score = found_.scores[i];
      score.savings += 1 - predicted / limits;
      score.violations += peak > predicted ? 1 : 0;
      score.worst = std::max(score.worst, (peak - predicted) / limits);
      score.time_above +=
          static_cast<double>(std::count_if(next.begin(), next.end(),
                                            [&](double sample) { return sample > predicted; })) /
          static_cast<double>(horizon_);
    }
  }

  Evaluation average() {
    const auto count = static_cast<double>(std::max<std::size_t>(found_.predictions, 1));
    found_.oracle /= count;
    for (PredictorScore& score : found_.scores) {
      score.savings /= count;
      score.violations /= count;
      score.time_above /= count;
    }
    return std::move(found_);
  }

  const EvaluationOptions& options_;
  const std::size_t history_, horizon_;  // in steps
  std::size_t length_ = 0;
  std::vector<Samples> pods_;
  Evaluation found_;
};

}  // namespace

Evaluation evaluate_predictors(const std::vector<std::shared_ptr<const MemorySeries>>& series,
                               const EvaluationOptions& options) {
  return Evaluator(options).run(series);
}

}  // namespace headroom::simulate
