// SPDX-License-Identifier: Apache-2.0
// NodeSummary: what the annotation headroom.io/status of a Node object says. headroom-kube writes
// it on each node, and `headroom-kube extender` scores nodes by it. Pure.
//
//   {"time":"2026-11-20T23:00:00Z","cpuContention":0.12,"memoryContention":0.03,"memoryLeft":0.4,
//    "shortageExpected":false,"hardThreshold":"memory.available"}
//
// All but the time may be absent. Two decimals; less than kMaxSummaryBytes.
#pragma once

#include "base/clock.h"

#include <headroom/result.h>
#include <headroom/units.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

namespace headroom::kube {

inline constexpr const char* kSummaryAnnotation = "headroom.io/status";
inline constexpr std::size_t kMaxSummaryBytes = 256;

struct NodeSummary {
  WallTime time{};  // whole seconds, by the node's clock
  // 0 to 1: the higher of the latest reading and the average of a minute; see SchedulingAdvice.
  std::optional<double> cpu_contention{}, memory_contention{};
  // The share of the memory that is left until a hard threshold when the pods have grown as
  // forecast, 0 to 1.
  std::optional<double> memory_left{};
  std::optional<bool> shortage_expected{};
  std::string hard_threshold{};  // the signal of one that is met; "": none is
  friend bool operator==(const NodeSummary&, const NodeSummary&) = default;
};

std::string as_text(const NodeSummary& summary);
// Error: too long, not such an object, or without a time. A value of another type is absent.
Result<NodeSummary> node_summary_of(const std::string& text);

// How two summaries differ, apart from their times.
enum class SummaryChange { kNone, kNumbers, kFacts, kWorse };
// kNumbers: a number by at least kSummaryStep. kFacts: the hard threshold, the expected shortage,
// or whether a number is known. kWorse: such a fact that speaks against the node, or contention
// that is higher by at least kSummaryRise.
inline constexpr double kSummaryStep = 0.05, kSummaryRise = 0.1;
SummaryChange change_of(const NodeSummary& from, const NodeSummary& to);

}  // namespace headroom::kube
