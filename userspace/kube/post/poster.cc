// SPDX-License-Identifier: Apache-2.0
#include "kube/post/poster.h"

#include "act/durable_file.h"
#include "config/read_file.h"
#include "kube/post/backoff.h"
#include "report/human.h"
#include "report/journal.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace headroom::kube {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

constexpr Duration kIdle = seconds(10);  // nothing is due: look all the same, now and then
constexpr Duration kLookAtDaemon = seconds(20);
constexpr unsigned kDeaf = 3;  // such looks in vain: headroomd does not tell any more
constexpr mode_t kOwner = 0600;

std::string pod_of(const Evicted& evicted) {
  return evicted.pod_namespace + "/" + evicted.name;
}

// Whole seconds of a Unix time in microseconds: "2026-11-22T04:30:00Z".
std::string rfc3339(std::int64_t unix_us) {
  const std::time_t time = unix_us / 1'000'000;
  std::tm utc{};
  ::gmtime_r(&time, &utc);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

double seconds_since(const std::string& stamp, std::int64_t unix_us) {
  const auto then = static_cast<std::int64_t>(std::strtoull(stamp.c_str(), nullptr, 16));
  return std::max(0.0, static_cast<double>(unix_us - then) / 1e6);
}

NodeConditions untold(NodeConditions conditions, const std::string& since) {
  for (NodeCondition& condition : conditions)
    condition = {.holds = std::nullopt, .since = since};
  return conditions;
}

}  // namespace

Poster::Poster(PosterTerms terms, PosterWorld world)
    : terms_(std::move(terms)), world_(std::move(world)), node_(terms_.node, {}) {
  load();
  node_ = NodeTeller(terms_.node, queue_.node);
}

void Poster::load() {
  const auto text = config::read_file(terms_.state_file);
  if (!text) {
    if (text.error().code != ENOENT)
      log::error("read {}: {}", terms_.state_file.string(), text.error().what);
    return;
  }
  auto queue = queue_of(*text);
  if (queue) {
    queue_ = std::move(*queue);
    saved_ = *text;
    return;
  }
  std::error_code ignored;
  fs::rename(terms_.state_file, terms_.state_file.string() + ".damaged", ignored);
  log::error("read {}: {}; set aside as .damaged: evictions from now on are told",
             terms_.state_file.string(), queue.error().what);
}

// Before and after every step. What cannot be written is still told: twice does no harm, never
// does.
void Poster::save() {
  std::string text = as_text(queue_);
  if (text == saved_) return;
  const auto written = act::write_durably(terms_.state_file, text, kOwner);
  if (written) {
    saved_ = std::move(text);
    return;
  }
  if (tally_.unwritten++ == 0)
    log::error("{}: evictions that the API server was not told of are lost in a restart",
               written.error().what);
}

bool Poster::read_more() {
  const auto read = follow(terms_.audit_log, queue_.cursor);
  if (!read) {
    if (log_trouble_ != read.error().what) log::error("{}", read.error().what);
    log_trouble_ = read.error().what;
    return false;
  }
  log_trouble_.clear();
  if (read->gap) {
    ++tally_.unread;
    log::error("{} was rotated away before it was read to its end: evictions may be missing",
               terms_.audit_log.string());
  }
  for (const std::string& line : read->lines) {
    if (!nlohmann::json::accept(line)) ++tally_.unread;
    auto evicted = evicted_of(line);
    if (!evicted) continue;
    ++tally_.taken;
    take(queue_, std::move(*evicted));
  }
  const bool moved = queue_.cursor != read->cursor;
  queue_.cursor = read->cursor;
  return moved;
}

void Poster::read_log() {
  if (terms_.posting.after == config::ApiConfig::After::kNone) {
    queue_.cursor.reset();  // what happens until it is wanted again is nobody's to tell
    queue_.postings.clear();
    return;
  }
  while (read_more()) {
  }
}

// Conditions of a daemon that is not there are not known, whatever its last file says.
void Poster::read_node() {
  if (!terms_.node.conditions && !terms_.node.taints) return;
  if (world_.now() >= next_look_) {
    next_look_ = world_.now() + kLookAtDaemon;
    deaf_ = world_.headroomd_lives() ? 0 : deaf_ + 1;
    if (deaf_ == kDeaf) {
      log::warning("headroomd does not answer: the node's conditions are told to be unknown");
      node_.adopt(untold({}, rfc3339(world_.unix_time())));
      node_text_.clear();
    }
  }
  if (deaf_ >= kDeaf) return;
  auto text = config::read_file(terms_.node_status);
  if (!text || *text == node_text_) return;
  node_text_ = std::move(*text);
  const auto conditions = conditions_of(node_text_);
  if (conditions)
    node_.adopt(*conditions);
  else
    log::error("{}: {}", terms_.node_status.string(), conditions.error().what);
}

void Poster::server_said(Heard heard, std::optional<Duration> retry_after, const std::string& why) {
  ++tally_.heard[static_cast<std::size_t>(heard)];
  if (heard != Heard::kServer) {
    if (troubles_ > 0)
      log::info("the API server answers again; {} evictions are to be told",
                queue_.postings.size());
    troubles_ = 0;
    trouble_.clear();
    return;
  }
  if (troubles_ == 0)
    log::warning("the API server: {}; what is to be told is kept, and told later", why);
  ++troubles_;
  trouble_ = why;
  held_until_ = world_.now() + wait_after(troubles_, world_.chance(), retry_after);
}

void Poster::note(const Posting& posting, Step step, const Answer& answer) {
  server_said(answer.heard, answer.retry_after, answer.why);
  if (answer.heard == Heard::kDone) ++tally_.done[static_cast<std::size_t>(step)];
  if (answer.heard == Heard::kGone) ++tally_.gone;
  // Of a no, the first time.
  if (answer.heard == Heard::kRefused && posting.at(step).failures == 1)
    log::error("tell the API server of {} ({}): {}", pod_of(posting.evicted), name(step),
               answer.why);
}

// False: the server is to be left alone.
bool Poster::tell(Posting& posting, Step step) {
  const auto response = world_.exchange(request_for(posting, step, terms_.posting));
  if (world_.stopping()) return false;  // what was cut short by ourselves says nothing of it
  const Answer answer = settle(posting, step, response, world_.now(), world_.chance());
  note(posting, step, answer);
  save();
  return answer.heard != Heard::kServer;
}

void Poster::finish(const Posting& posting) {
  const double delay = seconds_since(posting.evicted.stamp, world_.unix_time());
  ++tally_.finished;
  tally_.delay_sum += delay;
  tally_.delay_most = std::max(tally_.delay_most, delay);
  log::info(
      "the API server was told of the eviction of {}, {} after it was decided",
      pod_of(posting.evicted),
      report::human(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(delay))));
}

void Poster::tell_all() {
  for (Posting& posting : queue_.postings) {
    while (const auto step = next_step(posting, terms_.posting, world_.now()))
      if (world_.stopping() || !tell(posting, *step)) return;
    if (finished(posting, terms_.posting)) finish(posting);
  }
}

void Poster::tell_node() {
  const Instant now = world_.now();
  const auto due = node_.due();
  if (!due || *due > now) return;
  const auto told = node_.turn(now, rfc3339(world_.unix_time()), world_.chance(), world_.exchange);
  if (!told.any || world_.stopping()) return;
  server_said(told.heard, told.retry_after, told.why);
  if (told.heard == Heard::kRefused)
    log::error("tell the API server of the node's conditions: {}", told.why);
  queue_.node = node_.told();
}

Duration Poster::idle() const {
  const Instant now = world_.now();
  Instant next = now + kIdle;
  for (const Posting& posting : queue_.postings)
    if (const auto at = due(posting, terms_.posting)) next = std::min(next, *at);
  if (const auto at = node_.due()) next = std::min(next, *at);
  if (troubles_ > 0) next = std::min(now + kIdle, std::max(next, held_until_));
  return std::max(Duration::zero(), next - now);
}

Duration Poster::turn() {
  read_log();
  read_node();
  save();
  if (troubles_ == 0 || world_.now() >= held_until_) {
    tell_all();
    const bool left_alone = troubles_ > 0 && world_.now() < held_until_;
    if (!left_alone) tell_node();
  }
  std::erase_if(queue_.postings,
                [&](const Posting& posting) { return finished(posting, terms_.posting); });
  save();
  return idle();
}

nlohmann::ordered_json Poster::state() const {
  nlohmann::ordered_json state{{"waiting", queue_.postings.size()}};
  if (!queue_.postings.empty()) state["waitingSince"] = queue_.postings.front().first_time;
  if (!trouble_.empty()) state["trouble"] = trouble_;
  if (!log_trouble_.empty()) state["auditTrouble"] = log_trouble_;
  state["node"] = {{"conditions", queue_.node.conditions}, {"taints", queue_.node.taints}};
  state.update(tally_json(tally_));
  return state;
}

}  // namespace headroom::kube
