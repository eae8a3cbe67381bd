// SPDX-License-Identifier: Apache-2.0
// NodeSignals: what headroomd reports about the node to those who advise Kubernetes' scheduler.
#pragma once

#include <headroom/result.h>
#include <headroom/units.h>

#include <chrono>
#include <optional>
#include <string>

namespace headroom::kube {

// Absent: unknown, or there is none.
struct NodeSignals {
  // The share of the latest window that pods lost because the node is short of it, 0 to 1.
  std::optional<double> memory_contention, cpu_contention;
  std::optional<std::string> hard_threshold;  // the signal of one that is met
  std::optional<Duration> shortage_in;        // until the first hard threshold is crossed
  std::optional<Bytes> memory_capacity;
  std::optional<Bytes> memory_left;    // until the nearest hard threshold of memory
  std::optional<Bytes> memory_growth;  // of the pods' use, within the hour
  std::optional<Bytes> batch_memory;   // left after that growth, and in use by batch pods
  std::optional<MilliCpu> cpu_capacity;
  std::optional<MilliCpu> cpu_used;  // by all but batch pods
};

// An older document is one of a headroomd that hangs.
inline constexpr Duration kMaxSignalsAge = std::chrono::seconds(30);

// Of headroomd's /api/scheduling. Error: the text is not that document, or it is too old.
Result<NodeSignals> signals_of(const std::string& json, Instant now);

}  // namespace headroom::kube
