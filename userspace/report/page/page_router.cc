// SPDX-License-Identifier: Apache-2.0
#include "report/page/page_router.h"

#include "report/page/audit_tail.h"
#include "report/page/host_check.h"
#include "report/page/page.h"
#include "report/status/status_json.h"

#include <charconv>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

constexpr const char* kPlain = "text/plain; charset=utf-8";
constexpr const char* kJson = "application/json";
constexpr std::size_t kMaxPods = 10'000;

using Json = nlohmann::ordered_json;

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

// An integer from 1 to `most`; absent: anything else.
std::optional<std::size_t> number(std::string_view text, std::size_t most) {
  std::size_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || count < 1 || count > most) return std::nullopt;
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
    auto json = status_json(*node, table, qos_of_, most);
    top_waiters_.update(table);
    json["top_waiters"] = top_waiters_.json();
    text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  return {200, kJson, text_body(std::move(text)),
          with_security_headers({{"Cache-Control", "no-store"}})};
}

HttpResponse PageRouter::cpus() const {
  return {200, kJson, text_body(setup_.cpus ? setup_.cpus() : "null"),
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
  if (request.path == "/") return page();
  if (!request.path.starts_with("/api/")) return std::nullopt;
  if (!is_allowed_host(request.host, setup_.names))
    return error_response(421, "Host: want an address or the name of this host, or localhost");
  return api_document(request);
}

std::optional<HttpResponse> PageRouter::api_document(const HttpRequest& request) {
  if (request.path == "/api/status") return status(request);
  if (request.path == "/api/cpus") return cpus();
  if (request.path == "/api/evictions") return evictions(request);
  return std::nullopt;
}

}  // namespace headroom::report
