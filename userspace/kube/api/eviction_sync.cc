// SPDX-License-Identifier: Apache-2.0
#include "kube/api/eviction_sync.h"

#include "base/atomic_file.h"
#include "base/clock.h"
#include "base/human_readable.h"
#include "base/log/journal.h"
#include "config/yaml/yaml.h"
#include "kube/api/api_response.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace headroom::kube {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

constexpr Duration kIdle = seconds(10);  // the longest wait, even if nothing is due
constexpr Duration kDaemonCheckPeriod = seconds(20);
constexpr unsigned kMaxMissedChecks = 3;  // missed checks after which headroomd counts as stopped
constexpr mode_t kOwner = 0600;

std::string pod_of(const EvictionRecord& evicted) {
  return evicted.pod_namespace + "/" + evicted.name;
}

std::string time_text(const EvictionSyncPorts& ports) {
  return rfc3339(WallTime(std::chrono::microseconds(ports.unix_time())));
}

double seconds_since(const std::string& stamp, std::int64_t unix_us) {
  const auto then = static_cast<std::int64_t>(std::strtoull(stamp.c_str(), nullptr, 16));
  return std::max(0.0, static_cast<double>(unix_us - then) / 1e6);
}

NodeConditions unknown_conditions(NodeConditions conditions, const std::string& since) {
  for (NodeCondition& condition : conditions)
    condition = {.holds = std::nullopt, .since = since};
  return conditions;
}

}  // namespace

EvictionSync::EvictionSync(EvictionSyncOptions options, EvictionSyncPorts ports)
    : options_(std::move(options)), ports_(std::move(ports)), node_(options_.node, {}) {
  load();
  node_ = NodeConditionSync(options_.node, queue_.node);
}

void EvictionSync::load() {
  const auto text = config::read_file(options_.state_file);
  if (!text) {
    if (text.error().code != ENOENT)
      log::error("read {}: {}", options_.state_file.string(), text.error().what);
    return;
  }
  auto queue = queue_of(*text);
  if (queue) {
    queue_ = std::move(*queue);
    saved_ = *text;
    return;
  }
  std::error_code ignored;
  fs::rename(options_.state_file, options_.state_file.string() + ".damaged", ignored);
  log::error("read {}: {}; set aside as .damaged: only evictions from now on are reported",
             options_.state_file.string(), queue.error().what);
}

// Called before and after every step. A failed write does not stop the reports: reporting twice is
// harmless, never reporting is not.
void EvictionSync::save() {
  std::string text = as_text(queue_);
  if (text == saved_) return;
  const auto written = write_atomically(options_.state_file, text,
                                        {.mode = kOwner, .durable = true, .make_directory = true});
  if (written) {
    saved_ = std::move(text);
    return;
  }
  if (counters_.unwritten++ == 0)
    log::error(
        "{}: a restart would lose the evictions that were not yet reported to the API server",
        written.error().what);
}

bool EvictionSync::read_more() {
  const auto read = read_audit_log(options_.audit_log, queue_.cursor);
  if (!read) {
    if (audit_log_error_ != read.error().what) log::error("{}", read.error().what);
    audit_log_error_ = read.error().what;
    return false;
  }
  audit_log_error_.clear();
  if (read->gap) {
    ++counters_.unread;
    log::error("{} was rotated away before it was read to its end: evictions may be missing",
               options_.audit_log.string());
  }
  for (const std::string& line : read->lines) {
    if (!nlohmann::json::accept(line)) ++counters_.unread;
    auto evicted = parse_eviction(line);
    if (!evicted) continue;
    ++counters_.taken;
    take(queue_, std::move(*evicted));
  }
  const bool moved = queue_.cursor != read->cursor;
  queue_.cursor = read->cursor;
  return moved;
}

void EvictionSync::read_log() {
  if (options_.pending.after == config::ApiConfig::AfterEviction::kNone) {
    queue_.cursor.reset();  // evictions while afterEviction is None are never reported
    queue_.pending_evictions.clear();
    return;
  }
  while (read_more()) {
  }
}

// If headroomd does not run, the conditions are unknown, whatever its last status file says.
void EvictionSync::read_node() {
  if (!options_.node.conditions && !options_.node.taints) return;
  if (ports_.now() >= next_daemon_check_) {
    next_daemon_check_ = ports_.now() + kDaemonCheckPeriod;
    missed_checks_ = ports_.is_headroomd_alive() ? 0 : missed_checks_ + 1;
    if (missed_checks_ == kMaxMissedChecks) {
      log::warning("headroomd does not answer: the node's conditions are set to Unknown");
      node_.adopt(unknown_conditions({}, time_text(ports_)));
      node_text_.clear();
    }
  }
  if (missed_checks_ >= kMaxMissedChecks) return;
  auto text = config::read_file(options_.node_status);
  if (!text || *text == node_text_) return;
  node_text_ = std::move(*text);
  const auto conditions = conditions_of(node_text_);
  if (conditions)
    node_.adopt(*conditions);
  else
    log::error("{}: {}", options_.node_status.string(), conditions.error().what);
}

void EvictionSync::note_response_class(ResponseClass response_class,
                                       std::optional<Duration> retry_after,
                                       const std::string& why) {
  ++counters_.response_class[static_cast<std::size_t>(response_class)];
  if (response_class != ResponseClass::kServerError) {
    if (server_failures_ > 0)
      log::info("the API server answers again; {} evictions are to be reported",
                queue_.pending_evictions.size());
    server_failures_ = 0;
    server_error_.clear();
    return;
  }
  if (server_failures_ == 0)
    log::warning("the API server: {}; pending reports are kept and sent later", why);
  ++server_failures_;
  server_error_ = why;
  paused_until_ = ports_.now() + wait_after(server_failures_, ports_.chance(), retry_after);
}

void EvictionSync::note(const PendingEviction& pending, Step step, const StepResult& result) {
  note_response_class(result.response_class, result.retry_after, result.why);
  if (result.response_class == ResponseClass::kDone)
    ++counters_.done[static_cast<std::size_t>(step)];
  if (result.response_class == ResponseClass::kGone) ++counters_.gone;
  // Only the first refusal in a row is logged.
  if (result.response_class == ResponseClass::kRefused && pending.at(step).failures == 1)
    log::error("report {} to the API server ({}): {}", pod_of(pending.evicted), name(step),
               result.why);
}

// Returns false if no more requests may be sent for now.
bool EvictionSync::send_step(PendingEviction& pending, Step step) {
  const auto response = ports_.exchange(request_for(pending, step, options_.pending));
  if (ports_.stopping()) return false;  // we aborted the request: its error means nothing
  const StepResult result = record_response(pending, step, response, ports_.now(), ports_.chance());
  note(pending, step, result);
  save();
  return result.response_class != ResponseClass::kServerError;
}

void EvictionSync::finish(const PendingEviction& pending) {
  const double delay = seconds_since(pending.evicted.stamp, ports_.unix_time());
  ++counters_.finished;
  counters_.delay_sum += delay;
  counters_.delay_most = std::max(counters_.delay_most, delay);
  log::info(
      "reported the eviction of {} to the API server, {} after it was decided",
      pod_of(pending.evicted),
      report::human(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(delay))));
}

void EvictionSync::send_pending() {
  for (PendingEviction& pending : queue_.pending_evictions) {
    while (const auto step = next_step(pending, options_.pending, ports_.now()))
      if (ports_.stopping() || !send_step(pending, *step)) return;
    if (finished(pending, options_.pending)) finish(pending);
  }
}

void EvictionSync::sync_node() {
  const Instant now = ports_.now();
  const auto due = node_.due();
  if (!due || *due > now) return;
  const auto published = node_.run_once(now, time_text(ports_), ports_.chance(), ports_.exchange);
  if (!published.any || ports_.stopping()) return;
  note_response_class(published.response_class, published.retry_after, published.why);
  if (published.response_class == ResponseClass::kRefused)
    log::error("send the node's conditions to the API server: {}", published.why);
  queue_.node = node_.published();
}

Duration EvictionSync::time_until_next_run() const {
  const Instant now = ports_.now();
  Instant next = now + kIdle;
  for (const PendingEviction& pending : queue_.pending_evictions)
    if (const auto at = due(pending, options_.pending)) next = std::min(next, *at);
  if (const auto at = node_.due()) next = std::min(next, *at);
  if (server_failures_ > 0) next = std::min(now + kIdle, std::max(next, paused_until_));
  return std::max(Duration::zero(), next - now);
}

Duration EvictionSync::run_once() {
  read_log();
  read_node();
  save();
  if (server_failures_ == 0 || ports_.now() >= paused_until_) {
    send_pending();
    const bool left_alone = server_failures_ > 0 && ports_.now() < paused_until_;
    if (!left_alone) sync_node();
  }
  std::erase_if(queue_.pending_evictions, [&](const PendingEviction& pending) {
    return finished(pending, options_.pending);
  });
  save();
  return time_until_next_run();
}

nlohmann::ordered_json EvictionSync::state() const {
  nlohmann::ordered_json state{{"pending", queue_.pending_evictions.size()}};
  if (!queue_.pending_evictions.empty())
    state["oldestPendingSince"] = queue_.pending_evictions.front().first_time;
  if (!server_error_.empty()) state["error"] = server_error_;
  if (!audit_log_error_.empty()) state["auditLogError"] = audit_log_error_;
  state["node"] = {{"conditions", queue_.node.conditions}, {"taints", queue_.node.taints}};
  state.update(counters_json(counters_));
  return state;
}

}  // namespace headroom::kube
