// SPDX-License-Identifier: Apache-2.0
#include "kube/scheduling/scheduling_advice.h"

#include <chrono>
#include <cmath>

namespace headroom::kube {
namespace {

// An expected shortage must have been seen for most of a minute: forecasts of a load that changes
// from second to second come and go.
constexpr AdviceLevels kShortageLevels{.begin = 0.5, .end = 0.1};
constexpr double kEndPart = 0.25;  // of the contention at which the advice begins

// Of the samples of the latest time of this length.
double weight_of(Duration length) {
  return 1 - std::exp(-seconds_of(length) / seconds_of(AverageShare::kAverageTime));
}

}  // namespace

void AverageShare::add(std::optional<double> sample, Instant at) {
  if (last_ == Instant{}) last_ = at;
  if (is_unknown(at)) value_.reset();
  if (!sample) return;
  if (!value_) {
    value_ = *sample;
    since_ = at;
  } else {
    // Divided by the weight of all samples so far: else the first one counts for a minute.
    const double all = weight_of(at - since_);
    if (all > 0) *value_ += (*sample - *value_) * weight_of(at - last_) / all;
  }
  latest_ = *sample;
  last_ = at;
}

std::optional<double> AverageShare::settled() const {
  return value_ && last_ - since_ >= kSettleTime ? value_ : std::nullopt;
}

std::optional<double> expects_shortage(const NodeSignals& signals, Duration within) {
  if (signals.hard_threshold) return 1;
  if (signals.shortage_in && *signals.shortage_in <= within) return 1;
  if (!signals.memory_left) return std::nullopt;
  return signals.memory_growth && *signals.memory_growth > *signals.memory_left ? 1 : 0;
}

SchedulingAdvice::SchedulingAdvice(Options options, const AdviceStates& states)
    : options_(options), states_(states) {
  levels_.fill({.begin = options.contention, .end = options.contention * kEndPart});
  levels_[static_cast<std::size_t>(Advice::kShortageExpected)] = kShortageLevels;
}

void SchedulingAdvice::update(const std::optional<NodeSignals>& signals, Instant at,
                              const std::string& time) {
  const NodeSignals seen = signals.value_or(NodeSignals{});
  averages_[static_cast<std::size_t>(Advice::kMemoryContention)].add(seen.memory_contention, at);
  averages_[static_cast<std::size_t>(Advice::kCpuContention)].add(seen.cpu_contention, at);
  averages_[static_cast<std::size_t>(Advice::kShortageExpected)].add(
      expects_shortage(seen, options_.shortage_within), at);
  for (std::size_t i = 0; i < kAdvices; ++i)
    judge(i, at, time);
}

void SchedulingAdvice::judge(std::size_t advice, Instant at, const std::string& time) {
  AdviceState& state = states_[advice];
  const auto average = averages_[advice].settled();
  const bool becomes_known = average && !state.known;
  const bool becomes_unknown = state.known && averages_[advice].is_unknown(at);
  if (becomes_known || becomes_unknown) state.known = becomes_known;
  if (state.since.empty() || becomes_known || becomes_unknown) state.since = time;
  if (!average) {
    calm_since_[advice].reset();
    return;
  }
  if (!state.holds) {
    if (*average >= levels_[advice].begin) state = {.holds = true, .since = time, .known = true};
    return;
  }
  std::optional<Instant>& calm_since = calm_since_[advice];
  if (*average > levels_[advice].end) {
    calm_since.reset();
  } else if (!calm_since) {
    calm_since = at;
  } else if (at - *calm_since >= kCalmTime) {
    calm_since.reset();
    state = {.holds = false, .since = time, .known = true};
  }
}

}  // namespace headroom::kube
