// SPDX-License-Identifier: Apache-2.0
// What headroom-kube reads from files and from headroomd: its own state, lines of the record of
// evictions, the node's readings. What was read is written so that it is read as the same, and can
// be sent.
#include "base/state/checked_json.h"
#include "fuzz.h"
#include "kube/api/eviction_queue.h"
#include "kube/scheduling/node_signals.h"
#include "kube/scheduling/scheduling_sync.h"

#include <string>

#include <nlohmann/json.hpp>

namespace headroom::fuzz {
namespace {

void queue(const std::string& text) {
  const auto read = kube::queue_of(text);
  if (!read) return;
  const auto again = kube::queue_of(kube::as_text(*read));
  promise(again.has_value(), "a queue that is written is read");
  // What is not written is the time of a retry.
  promise(kube::as_text(*again) == kube::as_text(*read), "and is the same");
}

void scheduling(const std::string& text) {
  const auto read = kube::scheduling_state_of(text);
  if (!read) return;
  const auto again = kube::scheduling_state_of(kube::as_text(*read));
  promise(again && *again == *read, "a state that is written is read as the same");
}

void eviction(const std::string& line) {
  const auto evicted = kube::parse_eviction(line);
  if (!evicted) return;
  promise(!evicted->uid.empty() && !evicted->name.empty(), "requests name the pod");
  const kube::PendingEviction pending = kube::pending_from(*evicted);
  for (const kube::Step step : {kube::Step::kStatus, kube::Step::kAct, kube::Step::kEvent})
    (void)kube::request_for(pending, step, {.after = {}, .events = true, .node_name = "n1"});
}

}  // namespace
}  // namespace headroom::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace headroom;
  const std::string text(fuzz::text_of(bytes, size));
  fuzz::queue(text);
  fuzz::scheduling(text);
  fuzz::eviction(text);
  (void)kube::signals_of(text, Instant(std::chrono::hours(1)));
  // With a right checksum, which no fuzzer finds.
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) return 0;
  for (const int version : {1, 2}) {
    const std::string checked = state::checked_json(version, json)
                                    .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    fuzz::queue(checked);
    fuzz::scheduling(checked);
  }
  return 0;
}
