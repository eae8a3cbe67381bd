// SPDX-License-Identifier: Apache-2.0
#include "report/page/page_site.h"

#include "report/page/audit_tail.h"
#include "report/page/own_host.h"
#include "report/page/page.h"
#include "report/status_json.h"

#include <charconv>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

constexpr const char* kPlain = "text/plain; charset=utf-8";
constexpr const char* kJson = "application/json";
constexpr std::size_t kMostPods = 10'000;

using Json = nlohmann::ordered_json;

// No type is guessed, no other site learns where its reader came from, and none may embed it.
std::vector<Header> guarded(std::vector<Header> headers) {
  headers.push_back({"X-Content-Type-Options", "nosniff"});
  headers.push_back({"Referrer-Policy", "no-referrer"});
  headers.push_back({"Cross-Origin-Resource-Policy", "same-origin"});
  return headers;
}

Answer page() {
  return {200, "text/html; charset=utf-8", text_body(std::string(page_html())),
          guarded({{"Content-Security-Policy", std::string(page_policy())},
                   {"Cache-Control", "no-cache"}})};
}

Answer refusal(unsigned status, std::string why) {
  return {status, kPlain, text_body(std::move(why) + '\n'),
          guarded({{"Cache-Control", "no-store"}})};
}

// A whole number from 1 to `most`; absent: it is no such number.
std::optional<std::size_t> number(std::string_view text, std::size_t most) {
  std::size_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || count < 1 || count > most) return std::nullopt;
  return count;
}

std::optional<std::size_t> wanted_records(std::string_view text) {
  constexpr std::size_t kUsual = 20;
  return text.empty() ? kUsual : number(text, AuditTail::kMost);
}

}  // namespace

Answer PageSite::status(const Request& request) {
  const std::string_view told = request.argument("pods");
  const auto most = number(told, kMostPods);
  if (!told.empty() && !most)
    return refusal(400, "pods: want a number from 1 to " + std::to_string(kMostPods));
  std::string text = "{}";
  if (const auto node = shown_->node.latest()) {
    const auto cgroups = shown_->cgroups.latest();
    const CgroupTable none;
    const IndexedTable table(cgroups ? *cgroups : none);
    auto json = status_json(*node, table, qos_of_, most);
    most_waiting_.follow(table);
    json["most_waiting"] = most_waiting_.json();
    text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  return {200, kJson, text_body(std::move(text)), guarded({{"Cache-Control", "no-store"}})};
}

Answer PageSite::cpus() const {
  return {200, kJson, text_body(setup_.cpus ? setup_.cpus() : "null"),
          guarded({{"Cache-Control", "no-store"}})};
}

Answer PageSite::evictions(const Request& request) const {
  const auto last = wanted_records(request.argument("last"));
  if (!last)
    return refusal(400, "last: want a number from 1 to " + std::to_string(AuditTail::kMost));
  std::string file;
  if (const auto node = shown_->node.latest()) file = node->audit_log;
  const std::string tag = audit_tag(file);
  std::vector<Header> headers = guarded({{"Cache-Control", "no-cache"}});
  if (!tag.empty()) headers.push_back({"ETag", tag});
  if (!tag.empty() && request.if_none == tag) return {304, kJson, text_body(""), headers};
  auto tail = AuditTail::open(file, *last);
  if (!tail) return refusal(500, tail.error().what);
  return {200, kJson, std::move(*tail), headers};
}

std::optional<Answer> PageSite::answer(const Request& request) {
  if (request.path == "/") return page();
  if (!request.path.starts_with("/api/")) return std::nullopt;
  if (!is_own_host(request.host, setup_.names))
    return refusal(421, "Host: want an address or the name of this host, or localhost");
  return document(request);
}

std::optional<Answer> PageSite::document(const Request& request) {
  if (request.path == "/api/status") return status(request);
  if (request.path == "/api/cpus") return cpus();
  if (request.path == "/api/evictions") return evictions(request);
  return std::nullopt;
}

}  // namespace headroom::report
