// SPDX-License-Identifier: Apache-2.0
// SyncCounters: the results of reports to the API server since the start.
#pragma once

#include "kube/api/pending_eviction.h"

#include <array>
#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

namespace headroom::kube {

struct SyncCounters {
  std::uint64_t taken = 0;     // evictions found in the audit log
  std::uint64_t unread = 0;    // its lines that were not JSON, and logs that were gone too soon
  std::uint64_t finished = 0;  // pending evictions that were completed
  std::uint64_t gone = 0;      // pods that did not exist any more when they were reported
  std::array<std::uint64_t, kSteps> done{};  // by step
  std::array<std::uint64_t, kResponseClasses>
      response_class{};         // of all requests, by the class of the response
  std::uint64_t unwritten = 0;  // times the state could not be written
  // From the decision to evict until the API server had everything.
  double delay_sum = 0, delay_most = 0;  // seconds
};

inline nlohmann::ordered_json counters_json(const SyncCounters& counters) {
  nlohmann::ordered_json json{{"taken", counters.taken},
                              {"reported", counters.finished},
                              {"podGone", counters.gone},
                              {"auditLinesSkipped", counters.unread},
                              {"stateWriteFailures", counters.unwritten},
                              {"delaySumSeconds", counters.delay_sum},
                              {"delayMostSeconds", counters.delay_most}};
  for (const Step step : {Step::kStatus, Step::kAct, Step::kEvent})
    json["done"][std::string(name(step))] = counters.done[static_cast<std::size_t>(step)];
  for (std::size_t i = 0; i < kResponseClasses; ++i)
    json["requests"][std::string(name(static_cast<ResponseClass>(i)))] = counters.response_class[i];
  return json;
}

}  // namespace headroom::kube
