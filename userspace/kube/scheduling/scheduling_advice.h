// SPDX-License-Identifier: Apache-2.0
// SchedulingAdvice: what is said of the node to Kubernetes' scheduler: that its pods lose time to a
// shortage, or that one is expected. Pure: time is an argument.
//
// Each is an average over about a minute with two levels: the advice begins at the higher one, and
// ends when the average has stayed at or below the lower one for a while. So a node whose load
// changes from second to second is not advised against and for in turn.
#pragma once

#include "kube/scheduling/node_signals.h"

#include <headroom/units.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headroom::kube {

enum class Advice : std::uint8_t { kMemoryContention, kCpuContention, kShortageExpected };
inline constexpr std::size_t kAdvices = 3;
inline constexpr std::array<std::string_view, kAdvices> kAdviceTaintKeys{
    "headroom.io/memory-contention", "headroom.io/cpu-contention", "headroom.io/shortage-expected"};
inline constexpr std::array<std::string_view, kAdvices> kAdviceConditionTypes{
    "HeadroomMemoryContention", "HeadroomCPUContention", "HeadroomShortageExpected"};

// An exponential average with a time constant of kAverageTime, and of what there is while that is
// less. Unknown samples change nothing,
// until there were only those for kForgetAfter.
class AverageShare {
 public:
  static constexpr Duration kAverageTime = std::chrono::minutes(1);
  static constexpr Duration kSettleTime = std::chrono::seconds(30);
  static constexpr Duration kForgetAfter = std::chrono::minutes(1);

  void add(std::optional<double> sample, Instant at);
  // The higher of the average and the latest sample: it rises at once, and falls with the average.
  std::optional<double> highest() const {
    return value_ ? std::optional(std::max(*value_, latest_)) : std::nullopt;
  }
  // Absent: unknown, or known for less than kSettleTime.
  std::optional<double> settled() const;
  // There was no known sample for kForgetAfter.
  bool is_unknown(Instant at) const { return at - last_ > kForgetAfter; }

 private:
  std::optional<double> value_;
  double latest_ = 0;         // known sample; good with value_
  Instant since_{}, last_{};  // of known samples; last_ is that of the first sample until then
};

struct AdviceLevels {
  double begin = 0.2, end = 0.05;
};

// One advice, which begins and ends.
struct AdviceState {
  bool holds = false;
  std::string since{};  // RFC 3339; "": it was never known
  bool known = false;   // false: `holds` is the last that was
  friend bool operator==(const AdviceState&, const AdviceState&) = default;
};
using AdviceStates = std::array<AdviceState, kAdvices>;

class SchedulingAdvice {
 public:
  // For so long the average must be at or below the end level before the advice ends.
  static constexpr Duration kCalmTime = std::chrono::minutes(2);

  struct Options {
    double contention = 0.2;  // begins at this share of lost time, ends at a quarter of it
    Duration shortage_within = std::chrono::minutes(5);
    friend bool operator==(const Options&, const Options&) = default;
  };
  // `states`: those of an earlier run, which stay until there is something to judge by.
  SchedulingAdvice(Options options, const AdviceStates& states);

  // `signals`: absent if headroomd did not answer. `time`: the same instant in RFC 3339.
  void update(const std::optional<NodeSignals>& signals, Instant at, const std::string& time);

  const AdviceStates& states() const { return states_; }
  // The higher of the average and the latest reading; absent: unknown.
  std::optional<double> highest(Advice advice) const {
    return averages_[static_cast<std::size_t>(advice)].highest();
  }

 private:
  void judge(std::size_t advice, Instant at, const std::string& time);

  const Options options_;
  std::array<AdviceLevels, kAdvices> levels_;
  std::array<AverageShare, kAdvices> averages_{};
  std::array<std::optional<Instant>, kAdvices> calm_since_{};
  AdviceStates states_;
};

// Whether a hard threshold is met, or will be within that time, or the pods are forecast to grow by
// more than what is left; 1 or 0, absent: unknown.
std::optional<double> expects_shortage(const NodeSignals& signals, Duration within);

}  // namespace headroom::kube
