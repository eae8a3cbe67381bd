// SPDX-License-Identifier: Apache-2.0
#include "kube/scheduling/scheduling_sync.h"

#include "base/state/checked_json.h"
#include "kube/api/api_response.h"
#include "kube/api/node_taints.h"
#include "kube/scheduling/scheduling_requests.h"

#include <algorithm>
#include <utility>

namespace headroom::state {

HEADROOM_FIELDS(kube::AdviceState, holds, since, known);
HEADROOM_FIELDS(kube::BatchAmounts, memory, cpu);
HEADROOM_FIELDS(kube::SchedulingState, left, advice, batch);

}  // namespace headroom::state

namespace headroom::kube {
namespace {

constexpr int kStateVersion = 1;
constexpr auto kTaints = static_cast<std::size_t>(SchedulingPart::kTaints);
constexpr auto kAnnotation = static_cast<std::size_t>(SchedulingPart::kAnnotation);
constexpr auto kStatus = static_cast<std::size_t>(SchedulingPart::kStatus);

BatchAmounts largest(const BatchAmounts& a, const BatchAmounts& b) {
  return {.memory = std::max(a.memory, b.memory), .cpu = std::max(a.cpu, b.cpu)};
}

}  // namespace

std::string as_text(const SchedulingState& state) {
  return state::to_checked_text(kStateVersion, state);
}

Result<SchedulingState> scheduling_state_of(const std::string& text) {
  return state::from_checked_text<SchedulingState>(text, kStateVersion);
}

bool SummaryChoice::is_to_be_replaced(SummaryChange change, Duration age,
                                      const NodeSummary& current) const {
  switch (change) {
    case SummaryChange::kWorse:
    case SummaryChange::kFacts:
      return true;
    case SummaryChange::kNumbers:
      return age >= kNumbersPeriod;
    case SummaryChange::kNone:
      return age >= (current.hard_threshold.empty() ? kHeartbeat : kHardHeartbeat);
  }
  return true;
}

void SummaryChoice::update(const std::optional<NodeSummary>& current, Instant at) {
  if (chosen_ && current) {
    const SummaryChange change = change_of(*chosen_, *current);
    if (!is_to_be_replaced(change, at - chosen_at_, *current)) return;
    urgent_ |= change == SummaryChange::kWorse;
  }
  chosen_ = current;
  chosen_at_ = at;
}

SchedulingSync::SchedulingSync(SchedulingOptions options, const SchedulingState& state)
    : options_(std::move(options)),
      state_(state),
      advice_(options_.advice, state.advice),
      batch_(options_.advice.contention) {
  // Noted before the first write: a crash after it leaves something there.
  for (std::size_t i = 0; i < kSchedulingParts; ++i)
    state_.left[i] |= options_.parts()[i];
  if (options_.batch && state.batch != BatchAmounts{}) sent_batch_ = state.batch;
}

bool SchedulingSync::is_finished() const {
  return options_.parts() == SchedulingParts{} && state_.left == SchedulingParts{};
}

void SchedulingSync::observe(const std::optional<NodeSignals>& signals, Instant at, WallTime time) {
  // The program that ran before may have written just now.
  if (next_write_ == Instant{}) next_write_ = at + kWritePeriod;
  advice_.update(signals, at, rfc3339(time));
  state_.advice = advice_.states();
  if (options_.batch) {
    batch_.update(signals, at);
    // Saved before it is written: a killed program cannot take it back.
    state_.batch = largest(sent_batch_.value_or(BatchAmounts{}), batch());
  }
  if (options_.parts()[kAnnotation]) summary_.update(summary(signals, at, time), at);
}

// Absent if nothing is known. A single answer that is missing changes nothing. A hard threshold is
// known at once, contention after a while.
std::optional<NodeSummary> SchedulingSync::summary(const std::optional<NodeSignals>& signals,
                                                   Instant at, WallTime time) {
  if (signals && signals->hard_threshold) {
    hard_threshold_ = *signals->hard_threshold;
    hard_until_ = at + kHardHold;
  }
  const bool is_hard = at < hard_until_;
  if (!is_hard && std::ranges::none_of(advice_.states(), &AdviceState::known)) return std::nullopt;
  if (!signals) return summary_.chosen();
  NodeSummary now{.time = std::chrono::floor<std::chrono::seconds>(time)};
  now.cpu_contention = advice_.highest(Advice::kCpuContention);
  now.memory_contention = advice_.highest(Advice::kMemoryContention);
  if (signals->memory_left && signals->memory_capacity && signals->memory_capacity->count > 0) {
    const Bytes left = *signals->memory_left - signals->memory_growth.value_or(Bytes{});
    now.memory_left = std::clamp(
        static_cast<double>(left.count) / static_cast<double>(signals->memory_capacity->count), 0.0,
        1.0);
  }
  const AdviceState& shortage =
      advice_.states()[static_cast<std::size_t>(Advice::kShortageExpected)];
  if (shortage.known) now.shortage_expected = shortage.holds;
  if (is_hard) now.hard_threshold = hard_threshold_;
  return now;
}

std::string SchedulingSync::desired(std::size_t part) const {
  if (!options_.parts()[part]) return "";
  if (part == kTaints) return to_json_text(state::to_json(advice_.states()));
  if (part == kStatus) {
    std::string text = options_.conditions ? to_json_text(state::to_json(advice_.states())) : "";
    if (options_.batch)
      text += " " + std::to_string(batch().memory.count) + " " + std::to_string(batch().cpu.count);
    return text;
  }
  return summary_.chosen() ? as_text(*summary_.chosen()) : "";
}

// At first nothing is known, and nothing is written, so that what an earlier run wrote stays.
bool SchedulingSync::is_known(std::size_t part) const {
  if (parts_[part].settled) return true;
  if (part == kAnnotation) return summary_.chosen().has_value();
  // What an earlier run offered may be too much by now.
  if (part == kStatus && options_.batch) return true;
  return std::ranges::any_of(advice_.states(), &AdviceState::known);
}

bool SchedulingSync::is_due(std::size_t index, Instant now) const {
  const Part& part = parts_[index];
  if (!(options_.parts()[index] ? is_known(index) : state_.left[index])) return false;
  const bool news = part.failures == 0 && (!part.settled || part.sent != desired(index));
  if (!news && now < part.next) return false;
  if (index == kStatus && retracts()) return true;
  const bool is_urgent = index == kAnnotation && summary_.is_urgent();
  return now >= next_write_ - (is_urgent ? kWritePeriod : Duration{});
}

bool SchedulingSync::retracts() const {
  if (!options_.batch || !sent_batch_) return false;
  const BatchAmounts now = batch();
  return (sent_batch_->memory.count > 0 && now.memory.count == 0) ||
         (sent_batch_->cpu.count > 0 && now.cpu.count == 0);
}

HttpRequest SchedulingSync::status_request(const std::optional<BatchAmounts>& batch,
                                           WallTime time) const {
  const auto advice = options_.conditions ? std::optional(advice_.states()) : std::nullopt;
  return scheduling_apply(options_.node_name, advice, batch, rfc3339(time));
}

std::optional<HttpRequest> SchedulingSync::last_retraction(WallTime time) const {
  if (!options_.batch || sent_batch_ == BatchAmounts{}) return std::nullopt;
  return status_request(BatchAmounts{}, time);
}

void SchedulingSync::set_retracted() {
  sent_batch_ = state_.batch = BatchAmounts{};
}

// Between heartbeats, batch resources that are as they should be are only read.
NodeSyncResult SchedulingSync::send_status(Instant now, WallTime time, const Exchange& exchange) {
  const Part& part = parts_[kStatus];
  const auto wanted = options_.batch ? std::optional(batch()) : std::nullopt;
  if (wanted && part.settled && part.failures == 0 && part.sent == desired(kStatus) &&
      now < heartbeat_at_) {
    const auto node = exchange(node_get(options_.node_name));
    NodeSyncResult read = classify_node_response(node);
    if (read.response_class != ResponseClass::kDone || has_batch(node->body, *wanted)) return read;
  }
  NodeSyncResult result =
      write(SchedulingPart::kStatus, status_request(wanted, time), now, exchange);
  if (result.response_class == ResponseClass::kDone)
    sent_batch_ = wanted;
  else if (wanted)  // either may be there
    sent_batch_ = largest(sent_batch_.value_or(BatchAmounts{}), *wanted);
  if (options_.batch || result.response_class == ResponseClass::kDone)
    state_.batch = sent_batch_.value_or(BatchAmounts{});
  heartbeat_at_ = now + kHeartbeat;
  return result;
}

NodeSyncResult SchedulingSync::write(SchedulingPart part, const HttpRequest& request, Instant now,
                                     const Exchange& exchange) {
  // Later after a write that was early; failing retractions do not add up.
  next_write_ = std::clamp(next_write_, now, now + kWritePeriod) + kWritePeriod;
  ++parts_[static_cast<std::size_t>(part)].writes;
  return classify_node_response(exchange(request));
}

NodeSyncResult SchedulingSync::send_taints(Instant now, const Exchange& exchange) {
  const auto node = exchange(node_get(options_.node_name));
  NodeSyncResult result = classify_node_response(node);
  if (result.response_class != ResponseClass::kDone) return result;
  const auto advice = options_.parts()[kTaints] ? std::optional(advice_.states()) : std::nullopt;
  const auto patch = soft_taints_patch(options_.node_name, node->body, advice);
  if (!patch)
    return {.response_class = ResponseClass::kRetry, .why = patch.error().what, .any = true};
  if (!*patch) return result;  // the taints are correct
  return write(SchedulingPart::kTaints, **patch, now, exchange);
}

NodeSyncResult SchedulingSync::send(std::size_t part, Instant now, WallTime time,
                                    const Exchange& exchange) {
  const std::string& node = options_.node_name;
  switch (static_cast<SchedulingPart>(part)) {
    case SchedulingPart::kTaints:
      return send_taints(now, exchange);
    case SchedulingPart::kAnnotation:
      return write(SchedulingPart::kAnnotation, annotation_patch(node, desired(part)), now,
                   exchange);
    case SchedulingPart::kStatus:
      break;
  }
  return send_status(now, time, exchange);
}

void SchedulingSync::record(std::size_t index, const NodeSyncResult& result, Instant now,
                            double chance) {
  Part& part = parts_[index];
  const bool done = result.response_class == ResponseClass::kDone;
  // After the first attempt it may be on the server, whatever the response was.
  state_.left[index] = options_.parts()[index] || !done;
  if (done) {
    part.sent = desired(index);
    part.settled = true;
    part.failures = 0;
    if (index == kAnnotation) summary_.set_written();
    const bool is_read = index == kTaints || (index == kStatus && options_.batch);
    part.next = now + (is_read ? kRecheckPeriod : kHeartbeat);
    // The annotation's heartbeat is a new summary.
    if (index == kAnnotation) part.next += kHeartbeat;
    return;
  }
  const bool refused = result.response_class == ResponseClass::kRefused;
  part.next = now + wait_after_failure(refused, ++part.failures, chance, result.retry_after);
}

NodeSyncResult SchedulingSync::run_once(Instant now, WallTime time, double chance,
                                        const Exchange& exchange) {
  NodeSyncResult all;
  for (std::size_t part = 0; part < kSchedulingParts; ++part) {
    if (!is_due(part, now)) continue;  // after a write no other one is
    all = send(part, now, time, exchange);
    record(part, all, now, chance);
    if (all.response_class == ResponseClass::kServerError) break;
  }
  return all;
}

}  // namespace headroom::kube
