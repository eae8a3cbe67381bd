// SPDX-License-Identifier: Apache-2.0
#include "judge/forecast/peak_forecast.h"

#include <algorithm>
#include <utility>

namespace headroom {
namespace {

void push(std::vector<double>& samples, double sample) {
  if (samples.size() == PeakForecast::kWindow) samples.erase(samples.begin());
  samples.push_back(sample);
}

bool is_current(const PeakForecast::State& state) {
  constexpr std::size_t kPredictors = kPeakPredictors.size();
  return state.records.size() == kPredictors && state.node.size() <= PeakForecast::kWindow &&
         state.made.size() <= PeakForecast::kHorizon &&
         std::all_of(state.made.begin(), state.made.end(),
                     [](const auto& made) { return made.forecast.size() == kPredictors; }) &&
         std::all_of(state.pods.begin(), state.pods.end(), [](const auto& series) {
           return series.used.size() <= PeakForecast::kWindow;
         });
}

}  // namespace

PeakForecast::PeakForecast(State state) {
  if (is_current(state)) state_ = std::move(state);
}

void PeakForecast::add(Instant at, std::span<const PodUse> pods) {
  if (!is_due(at)) return;
  if (state_.last != Instant{} && at - state_.last > 3 * kStep) {
    state_.pods.clear();
    state_.node.clear();
    state_.made.clear();
  }
  state_.due = at + kStep;
  state_.last = at;
  const bool known =
      std::all_of(pods.begin(), pods.end(), [](const PodUse& pod) { return pod.used.has_value(); });
  if (!known || pods.size() > kMaxPods) {
    for (Record& record : state_.records)
      record.forecast.reset();
    return;
  }
  double node = 0;
  for (PodSeries& series : state_.pods)
    series.seen = false;
  for (const PodUse& pod : pods) {
    add_sample(pod);
    node += static_cast<double>(pod.used->count);
  }
  std::erase_if(state_.pods, [](const PodSeries& series) { return !series.seen; });
  push(state_.node, node);
  score(node);
  forecast();
}

void PeakForecast::add_sample(const PodUse& pod) {
  auto place =
      std::lower_bound(state_.pods.begin(), state_.pods.end(), pod.pod,
                       [](const PodSeries& series, CgroupId id) { return series.pod < id; });
  if (place == state_.pods.end() || place->pod != pod.pod)
    place = state_.pods.insert(place, {.pod = pod.pod, .used = {}});
  place->seen = true;
  place->limit = pod.limit ? static_cast<double>(pod.limit->count) : 0;
  push(place->used, static_cast<double>(pod.used->count));
}

// Before the newest forecast is made, so that each is compared with later use alone.
void PeakForecast::score(double node) {
  for (Made& made : state_.made) {
    made.peak = std::max(made.peak, node);
    ++made.age;
  }
  if (state_.made.empty() || state_.made.front().age < kHorizon) return;
  const Made& oldest = state_.made.front();
  for (std::size_t i = 0; i < state_.records.size(); ++i) {
    if (!oldest.forecast[i] || oldest.peak <= 0) continue;
    ++(oldest.peak > *oldest.forecast[i] ? state_.records[i].exceeded : state_.records[i].held);
    state_.records[i].error_sum += (*oldest.forecast[i] - oldest.peak) / oldest.peak;
  }
  state_.made.erase(state_.made.begin());
}

// A share of the limits means something only if every pod has one.
void PeakForecast::forecast() {
  std::vector<std::span<const double>> windows;
  double limits = 0;
  bool all_limited = true;
  for (const PodSeries& series : state_.pods) {
    windows.emplace_back(series.used);
    limits += series.limit;
    all_limited &= series.limit > 0;
  }
  const RecentUse use{.pods = windows, .node = state_.node, .limits = all_limited ? limits : 0};
  Made& made = state_.made.emplace_back();
  made.forecast.resize(kPeakPredictors.size());
  for (std::size_t i = 0; i < state_.records.size(); ++i) {
    if (state_.node.size() >= kLeast) made.forecast[i] = kPeakPredictors[i].predict(use, {});
    state_.records[i].forecast = made.forecast[i];
  }
}

}  // namespace headroom
