// SPDX-License-Identifier: Apache-2.0
// Tally: what came of telling the API server, since the start.
#pragma once

#include "kube/post/posting.h"

#include <array>
#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

namespace headroom::kube {

struct Tally {
  std::uint64_t taken = 0;     // evictions found in the audit log
  std::uint64_t unread = 0;    // lines of it that were no JSON, or files that were gone too soon
  std::uint64_t finished = 0;  // postings of which nothing is left to do
  std::uint64_t gone = 0;      // of them, those whose pod was gone before it was evicted or deleted
  std::array<std::uint64_t, kSteps> done{};    // by step
  std::array<std::uint64_t, kHeards> heard{};  // of all requests, by what was heard
  std::uint64_t unwritten = 0;                 // times the state could not be written
  // From the decision to evict until the API server had it all.
  double delay_sum = 0, delay_most = 0;  // seconds
};

inline nlohmann::ordered_json tally_json(const Tally& tally) {
  nlohmann::ordered_json json{{"taken", tally.taken},
                              {"finished", tally.finished},
                              {"gone", tally.gone},
                              {"unread", tally.unread},
                              {"unwritten", tally.unwritten},
                              {"delaySumSeconds", tally.delay_sum},
                              {"delayMostSeconds", tally.delay_most}};
  for (const Step step : {Step::kStatus, Step::kAct, Step::kEvent})
    json["done"][std::string(name(step))] = tally.done[static_cast<std::size_t>(step)];
  for (std::size_t i = 0; i < kHeards; ++i)
    json["answers"][std::string(name(static_cast<Heard>(i)))] = tally.heard[i];
  return json;
}

}  // namespace headroom::kube
