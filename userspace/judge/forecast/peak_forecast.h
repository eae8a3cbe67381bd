// SPDX-License-Identifier: Apache-2.0
// PeakForecast: the highest memory use of a node's pods in the next hour, by each predictor from
// the last hour, and how earlier forecasts compare with what was used. Pure: time is an argument.
#pragma once

#include "judge/forecast/peak_predictor.h"

#include <headroom/units.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace headroom {

class PeakForecast {
 public:
  static constexpr Duration kStep = std::chrono::minutes(1);
  static constexpr std::size_t kWindow = 60;    // steps that a predictor sees
  static constexpr std::size_t kHorizon = 60;   // steps that it predicts
  static constexpr std::size_t kLeast = 15;     // steps without which there is no forecast
  static constexpr std::size_t kMaxPods = 512;  // with more there is none

  // A pod's working set; absent: unknown, and then the sample of this step is left out.
  struct PodUse {
    CgroupId pod;
    std::optional<Bytes> used;
    std::optional<Bytes> limit;  // absent: none
  };

  // What became of a predictor's forecasts.
  struct Record {
    std::optional<double> forecast;  // bytes, of the newest; absent: none
    std::uint64_t held = 0;          // forecasts that were not exceeded within their hour
    std::uint64_t exceeded = 0;      // and that were
    double error_sum = 0;            // of (forecast - peak) / peak, of both

    std::optional<double> mean_error() const {
      if (held + exceeded == 0) return std::nullopt;
      return error_sum / static_cast<double>(held + exceeded);
    }
  };
  // In the order of kPeakPredictors.
  using Records = std::vector<Record>;

  struct PodSeries {
    CgroupId pod;
    std::vector<double> used;  // bytes, oldest first
    double limit = 0;          // 0: none
    bool seen = false;
  };
  // Forecasts of one step, and the peak since then.
  struct Made {
    std::vector<std::optional<double>> forecast;  // in the order of kPeakPredictors
    double peak = 0;
    std::size_t age = 0;  // steps
  };
  // All that is kept over a restart of the daemon.
  struct State {
    Instant due{}, last{};
    std::vector<PodSeries> pods;  // by cgroup
    std::vector<double> node;
    std::vector<Made> made;  // oldest first
    Records records = Records(kPeakPredictors.size());
  };

  PeakForecast() = default;
  // Begins anew if the state is not one of this release's.
  explicit PeakForecast(State state);

  bool is_due(Instant at) const { return at >= state_.due; }
  // Takes a sample, if one is due, and forecasts. A gap of more than two steps begins anew.
  void add(Instant at, std::span<const PodUse> pods);
  const Records& records() const { return state_.records; }
  const State& state() const { return state_; }

 private:
  void add_sample(const PodUse& pod);
  void score(double node);
  void forecast();

  State state_;
};

}  // namespace headroom
