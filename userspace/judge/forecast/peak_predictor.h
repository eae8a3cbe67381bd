// SPDX-License-Identifier: Apache-2.0
// Peak predictors: how much of a resource the pods of a node will use at most in the next hours,
// from what they used in the last ones. Pure; each is one function, and kPeakPredictors lists them.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace headroom {

// Samples of the same instants, oldest first. Values of pods add up to those of the node.
struct RecentUse {
  std::span<const std::span<const double>> pods;
  std::span<const double> node;
  double limits = 0;  // sum of the pods' limits
};

struct PredictorOptions {
  double percentile = 0.98, margin = 0.10;   // of kPercentile
  double sigmas = 5;                         // of kSigma and kMaximum
  double pod_percentile = 0.99;              // of kMaximum
  double limit_margin = 0.014, drift = 0.5;  // of kDrift
  double limit_share = 0.9;                  // of kLimits
};

// Absent: there are no samples. Never more than the limits, if these are known.
using PeakPredictor = std::optional<double> (*)(const RecentUse&, const PredictorOptions&);

// A percentile of each pod's use, summed, and a margin: as koordinator does (p98 and 10 %).
std::optional<double> predict_percentile(const RecentUse& use, const PredictorOptions& options);
// The mean of the node's use and so many standard deviations.
std::optional<double> predict_sigma(const RecentUse& use, const PredictorOptions& options);
// The greater of two: the sum of a high percentile of each pod, and the mean with deviations
// ("Take it to the limit", EuroSys 2021).
std::optional<double> predict_maximum(const RecentUse& use, const PredictorOptions& options);
// The sum of the highest use of each pod, what the node's use has grown by from the first half of
// the samples to the second, times `drift`, and a share of the limits.
std::optional<double> predict_drift(const RecentUse& use, const PredictorOptions& options);
// A fixed share of the limits.
std::optional<double> predict_limits(const RecentUse& use, const PredictorOptions& options);

struct NamedPredictor {
  std::string_view name;
  PeakPredictor predict;
};
inline constexpr std::array<NamedPredictor, 5> kPeakPredictors{{{"drift", predict_drift},
                                                                {"maximum", predict_maximum},
                                                                {"sigma", predict_sigma},
                                                                {"percentile", predict_percentile},
                                                                {"limits", predict_limits}}};

// The value that this share of the samples does not exceed, by the nearest rank; absent: none.
std::optional<double> percentile(std::span<const double> samples, double share);

}  // namespace headroom
