// SPDX-License-Identifier: Apache-2.0
#include "judge/advice/reserve_advice.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace headroom {
namespace {

constexpr double kTolerated = 0.1;
constexpr double kLimitRaise = 1.2;

// Up, but not for what a multiplication of doubles adds; a reserve of nothing is no reserve.
double whole_units(double value, double unit) {
  return std::max(std::ceil(value / unit - 1e-6), 1.0) * unit;
}

bool differs(std::optional<double> present, double wanted) {
  return !present || std::abs(*present - wanted) > kTolerated * std::max(*present, wanted);
}

}  // namespace

std::optional<ReserveAdvice> advise_reserve(const ReserveUse& use, PeakPredictor predictor) {
  if (use.sum.size() < kLeastReserveSteps) return std::nullopt;
  std::vector<std::span<const double>> cgroups(use.cgroups.begin(), use.cgroups.end());
  const auto predicted = predictor({.pods = cgroups, .node = use.sum, .limits = 0}, {});
  if (!predicted) return std::nullopt;
  ReserveAdvice advice{.median = *percentile(use.sum, 0.5),
                       .p98 = *percentile(use.sum, 0.98),
                       .peak = *std::max_element(use.sum.begin(), use.sum.end())};
  double wanted = *predicted;
  if (use.at_limit && use.present) wanted = std::max(wanted, kLimitRaise * *use.present);
  advice.wanted = whole_units(wanted, use.unit);
  if (use.capacity > 0) advice.wanted = std::min(advice.wanted, use.capacity);
  advice.changes = differs(use.present, advice.wanted);
  const auto above = std::count_if(use.sum.begin(), use.sum.end(),
                                   [&](double used) { return used > advice.wanted; });
  advice.too_low = static_cast<double>(above) / static_cast<double>(use.sum.size());
  return advice;
}

}  // namespace headroom
