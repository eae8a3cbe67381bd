// SPDX-License-Identifier: Apache-2.0
#include "report/page/page_router.h"

#include "base/json_text.h"
#include "page.inc"  // written by `assemble`: kPage and kPolicy
#include "report/page/audit_tail.h"
#include "report/status/scheduling_json.h"
#include "report/status/status_json.h"
#include "report/status/status_parts.h"

#include <strings.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>
#include <utility>

#include <arpa/inet.h>
#include <nlohmann/json.hpp>

namespace headroom::report {

std::string_view page_html() {
  return kPage;
}

std::string_view page_policy() {
  return kPolicy;
}

namespace {

std::string cause_name(std::size_t cause) {
  return cause < HR_STALL_CAUSES ? std::string(kStallCauseNames[cause]) : "throttled";
}

}  // namespace

void TopWaiters::update(const IndexedCgroupTable& cgroups) {
  const CgroupTable& table = cgroups.table;
  if (table.at == at_) return;
  std::unordered_map<std::uint64_t, Totals> now;
  top_ = {};
  for (const PodRow& row : table.pods) {
    const hr_stalls* stalls = cgroups.waits.stalls(row.cgroup);
    const hr_waits* throttles = cgroups.waits.throttles(row.cgroup);
    if (!stalls && !throttles) continue;
    Totals& totals = now[row.cgroup.value];
    for (std::size_t cause = 0; stalls && cause < HR_STALL_CAUSES; ++cause)
      totals[cause] = stalls->causes[cause].ns;
    if (throttles) totals.back() = throttles->ns;
    compare(row, totals, table.at);
  }
  before_ = std::move(now);
  at_ = table.at;
}

void TopWaiters::compare(const PodRow& row, const Totals& now, Instant at) {
  if (at_ == Instant{}) return;
  const double seconds = seconds_of(at - at_);
  const auto found = before_.find(row.cgroup.value);
  const Totals before = found == before_.end() ? Totals{} : found->second;
  for (std::size_t cause = 0; cause < kWaitCauses; ++cause) {
    if (now[cause] <= before[cause]) continue;
    const double rate = static_cast<double>(now[cause] - before[cause]) / seconds;
    if (rate > top_[cause].ns_per_s) top_[cause] = {.pod = row.pod, .ns_per_s = rate};
  }
}

nlohmann::ordered_json TopWaiters::json() const {
  auto json = nlohmann::ordered_json::object();
  for (std::size_t cause = 0; cause < kWaitCauses; ++cause)
    if (const auto& [pod, rate] = top_[cause]; pod)
      json[cause_name(cause)] = {
          {"namespace", pod->pod_namespace}, {"name", pod->name}, {"ns_per_s", rate}};
  return json;
}

namespace {

// "[::1]:9750" → "::1", "node.:80" → "node"; "" if what follows is not a port.
std::string without_port(std::string_view host) {
  const bool bracketed = host.starts_with("[");
  const std::size_t end = bracketed ? host.find(']') : std::min(host.rfind(':'), host.size());
  if (end == std::string_view::npos || host.find('\0') != std::string_view::npos) return "";
  const std::string_view port = host.substr(bracketed ? end + 1 : end);
  if (!port.empty() &&
      (port.front() != ':' || port.find_first_not_of("0123456789", 1) != std::string_view::npos))
    return "";
  host = bracketed ? host.substr(1, end - 1) : host.substr(0, end);
  if (!bracketed && host.ends_with(".")) host.remove_suffix(1);
  return std::string(host);
}

bool is_address(const std::string& host) {
  in6_addr address;
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

bool same_name(const std::string& a, const std::string& b) {
  return ::strcasecmp(a.c_str(), b.c_str()) == 0;
}

}  // namespace

bool is_allowed_host(std::string_view host, const std::vector<std::string>& names) {
  if (host.empty()) return true;
  const std::string name = without_port(host);
  if (name.empty()) return false;
  return is_address(name) || same_name(name, "localhost") ||
         std::any_of(names.begin(), names.end(),
                     [&](const std::string& ours) { return same_name(name, ours); });
}

namespace {

constexpr const char* kPlain = "text/plain; charset=utf-8";
constexpr const char* kJson = "application/json";
constexpr std::size_t kMaxPods = 10'000;

using Json = nlohmann::ordered_json;

// One series: null where its value was unknown; left out if it never was known.
template <class Value>
void add_series(Json& json, std::string name, const std::vector<HistorySample>& samples,
                Value value) {
  Json series = Json::array();
  bool known = false;
  for (const HistorySample& sample : samples) {
    const auto& one = value(sample);
    series.push_back(one ? Json(*one) : Json(nullptr));
    known = known || one;
  }
  if (known) json[std::move(name)] = std::move(series);
}

// The samples by series: parallel to "at_ns", oldest first.
Json history_json(const std::vector<HistorySample>& samples) {
  Json times = Json::array(), signals = Json::object(), waits = Json::object();
  for (const HistorySample& sample : samples)
    times.push_back(std::chrono::nanoseconds(sample.at.time_since_epoch()).count());
  for (std::size_t i = 0; i < kSignals; ++i)
    add_series(signals, std::string(kSignalNames[i]), samples,
               [i](const HistorySample& sample) { return sample.available[i]; });
  for (std::size_t i = 0; i < HistorySample::kWaitCauses; ++i)
    add_series(waits, cause_name(i), samples,
               [i](const HistorySample& sample) { return sample.waited[i]; });
  return {{"at_ns", std::move(times)},
          {"signals", std::move(signals)},
          {"waited_ns", std::move(waits)}};
}

// No MIME sniffing, no Referer to other sites, no embedding in other sites.
std::vector<HttpHeader> with_security_headers(std::vector<HttpHeader> headers) {
  headers.push_back({"X-Content-Type-Options", "nosniff"});
  headers.push_back({"Referrer-Policy", "no-referrer"});
  headers.push_back({"Cross-Origin-Resource-Policy", "same-origin"});
  return headers;
}

HttpResponse page() {
  return {200, "text/html; charset=utf-8", text_body(std::string(page_html())),
          with_security_headers({{"Content-Security-Policy", std::string(page_policy())},
                                 {"Cache-Control", "no-cache"}})};
}

HttpResponse error_response(unsigned status, std::string why) {
  return {status, kPlain, text_body(std::move(why) + '\n'),
          with_security_headers({{"Cache-Control", "no-store"}})};
}

// An integer from `least` to `most`; absent: anything else.
std::optional<std::size_t> number(std::string_view text, std::size_t most, std::size_t least = 1) {
  std::size_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || count < least || count > most) return std::nullopt;
  return count;
}

std::optional<std::size_t> record_count(std::string_view text) {
  constexpr std::size_t kDefaultRecords = 20;
  return text.empty() ? kDefaultRecords : number(text, AuditTail::kMax);
}

}  // namespace

HttpResponse PageRouter::status(const HttpRequest& request) {
  const std::string_view pods_argument = request.argument("pods");
  const auto most = number(pods_argument, kMaxPods);
  if (!pods_argument.empty() && !most)
    return error_response(400, "pods: want a number from 1 to " + std::to_string(kMaxPods));
  std::string text = "{}";
  if (const auto node = views_->node.latest()) {
    const auto cgroups = views_->cgroups.latest();
    const CgroupTable none;
    const IndexedCgroupTable table(cgroups ? *cgroups : none);
    top_waiters_.update(table);
    text = status_text(
        *node, table, qos_of_, most,
        {{"kubernetes", kubernetes_json(setup_.kubernetes)}, {"top_waiters", top_waiters_.json()}});
  }
  return {200, kJson, text_body(std::move(text)),
          with_security_headers({{"Cache-Control", "no-store"}})};
}

HttpResponse PageRouter::history() const {
  return {200, kJson, text_body(to_json_text(history_json(views_->history.samples()))),
          with_security_headers({{"Cache-Control", "no-store"}})};
}

HttpResponse PageRouter::events(const HttpRequest& request) const {
  const std::string_view argument = request.argument("after");
  constexpr auto kMost = std::numeric_limits<std::size_t>::max();
  const auto after = argument.empty() ? std::optional<std::size_t>(0) : number(argument, kMost, 0);
  if (!after) return error_response(400, "after: want the number of an event");
  return {200, kJson, text_body(views_->events.json(*after)),
          with_security_headers({{"Cache-Control", "no-store"}})};
}

HttpResponse PageRouter::scheduling() const {
  return document([this] { return to_json_text(scheduling_json(*views_)); });
}

HttpResponse PageRouter::document(const std::function<std::string()>& json) {
  return {200, kJson, text_body(json ? json() : "null"),
          with_security_headers({{"Cache-Control", "no-store"}})};
}

HttpResponse PageRouter::evictions(const HttpRequest& request) const {
  const auto last = record_count(request.argument("last"));
  if (!last)
    return error_response(400, "last: want a number from 1 to " + std::to_string(AuditTail::kMax));
  std::string file;
  if (const auto node = views_->node.latest()) file = node->audit_log;
  const std::string tag = audit_etag(file);
  std::vector<HttpHeader> headers = with_security_headers({{"Cache-Control", "no-cache"}});
  if (!tag.empty()) headers.push_back({"ETag", tag});
  if (!tag.empty() && request.if_none_match == tag) return {304, kJson, text_body(""), headers};
  auto tail = AuditTail::open(file, *last);
  if (!tail) return error_response(500, tail.error().what);
  return {200, kJson, std::move(*tail), headers};
}

std::optional<HttpResponse> PageRouter::answer(const HttpRequest& request) {
  if (!is_allowed_host(request.host, setup_.names))
    return error_response(421,
                          "Host: want an address, localhost, the name of this host, or one of "
                          "hostNames in headroom.yaml");
  if (request.path == "/") return page();
  return request.path.starts_with("/api/") ? api_document(request) : std::nullopt;
}

std::optional<HttpResponse> PageRouter::api_document(const HttpRequest& request) {
  if (request.path == "/api/status") return status(request);
  if (request.path == "/api/scheduling") return scheduling();
  if (request.path == "/api/history") return history();
  if (request.path == "/api/events") return events(request);
  if (request.path == "/api/cpus") return document(setup_.cpus);
  if (request.path == "/api/memory") return document(setup_.memory);
  if (request.path == "/api/evictions") return evictions(request);
  return std::nullopt;
}

}  // namespace headroom::report
