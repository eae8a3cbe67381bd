// SPDX-License-Identifier: Apache-2.0
// BatchResources: how much memory and CPU of the node batch pods may be given, beside the requests
// of all others: what is left when the pods have grown as forecast. Pure: time is an argument.
//
// What is offered grows seldom and in steps, so that a node is not written for each change. It is
// taken back at once, and for a while, when the node needs it.
#pragma once

#include "kube/scheduling/node_signals.h"

#include <headroom/units.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace headroom::kube {

inline constexpr const char* kBatchMemory = "headroom.io/batch-memory";  // in bytes
inline constexpr const char* kBatchCpu = "headroom.io/batch-cpu";        // in thousandths of a CPU

// The highest use of CPUs outside of batch pods: of the averages of a minute in the last hour.
class CpuPeak {
 public:
  static constexpr Duration kMinute = std::chrono::minutes(1);
  static constexpr std::size_t kWindow = 60, kLeast = 15;  // minutes

  // An unknown sample is left out.
  void add(std::optional<MilliCpu> used, Instant at);
  // Absent: fewer than kLeast minutes are known.
  std::optional<MilliCpu> peak() const;

 private:
  std::deque<std::int64_t> minutes_;  // averages, oldest first
  std::int64_t sum_ = 0, count_ = 0;  // of the minute that has not ended
  Instant minute_began_{};
};

// Of one resource, in its unit.
class BatchOffer {
 public:
  static constexpr Duration kGrowPeriod = std::chrono::minutes(5);
  static constexpr Duration kRetractTime = std::chrono::minutes(5);
  static constexpr double kStep = 0.05;  // of the capacity

  // `left`: absent if it is unknown; what is offered then stays. `needed`: the node needs it back.
  void update(std::optional<std::int64_t> left, std::int64_t capacity, bool needed, Instant at);
  // Nothing is known: as if all of it were needed.
  void retract(Instant at);

  std::int64_t amount() const { return amount_; }
  bool is_retracted(Instant at) const { return at < retracted_until_; }

 private:
  std::int64_t amount_ = 0;
  Instant changed_at_{}, retracted_until_{};
};

class BatchResources {
 public:
  static constexpr double kCpuMargin = 0.1;  // of the peak
  // For so long headroomd may not answer before all is taken back.
  static constexpr Duration kSilence = std::chrono::seconds(10);

  // `contention`: of the latest window, at which the node needs a resource back.
  explicit BatchResources(double contention) : contention_(contention) {}

  void update(const std::optional<NodeSignals>& signals, Instant at);

  Bytes memory() const { return {memory_.amount()}; }
  MilliCpu cpu() const { return {cpu_.amount()}; }

 private:
  const double contention_;
  CpuPeak peak_;
  BatchOffer memory_, cpu_;
  std::optional<Instant> answered_at_{};
};

}  // namespace headroom::kube
