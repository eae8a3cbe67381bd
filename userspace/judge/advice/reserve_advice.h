// SPDX-License-Identifier: Apache-2.0
// advise_reserve(): how much of one resource to reserve for what runs outside of the pods, by a
// predictor of judge/forecast from recorded use, with the numbers it follows from. Nothing applies
// it.
//
// The cgroups that the reserve is for take the place of the pods in RecentUse, and their sum that
// of the node. There are no limits: `limits` predicts nothing, and `drift` adds no share of them.
#pragma once

#include "judge/forecast/peak_predictor.h"

#include <headroom/units.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

namespace headroom {

// In one unit: bytes, thousandths of a CPU, or tasks.
struct ReserveUse {
  std::vector<std::vector<double>> cgroups;  // of each the highest use of each step
  std::vector<double> sum;                   // the highest use of all together, of the same steps
  double capacity = 0;                       // of the node
  std::optional<double> present;             // what is reserved; absent: nothing is
  bool at_limit = false;                     // a cgroup reached its limit: its use would be more
  double unit = 1;                           // the advised value is a multiple of this
};

struct ReserveAdvice {
  double median = 0, p98 = 0, peak = 0;  // of the sum
  // What the predictor asks for, in whole units; at most the capacity. At a limit at least a fifth
  // more than the present value.
  double wanted = 0;
  bool changes = false;  // the present value differs by more than a tenth
  double too_low = 0;    // share of the steps in which the sum was above `wanted`
};

// What predictors see is of steps of this length.
inline constexpr Duration kReserveStep = std::chrono::minutes(1);
// Less is not enough to advise from.
inline constexpr std::size_t kLeastReserveSteps = 15;

// Absent: too few steps, or the predictor has no answer.
std::optional<ReserveAdvice> advise_reserve(const ReserveUse& use, PeakPredictor predictor);

}  // namespace headroom
