// SPDX-License-Identifier: Apache-2.0
#include "kube/extender/node_watch.h"

#include "base/json_text.h"
#include "kube/api/api_response.h"
#include "kube/api/pod_requests.h"

#include <utility>

#include <nlohmann/json.hpp>

namespace headroom::kube {
namespace {

HttpHeaders accept(const std::string& kind) {
  return {{"Accept", "application/json;as=" + kind + ";g=meta.k8s.io;v=v1"}};
}

Result<nlohmann::json> page_of(const Result<HttpResponse>& response) {
  if (!response) return failure("list nodes: " + response.error().what);
  if (!response->good()) return failure("list nodes: " + error_text(*response));
  nlohmann::json page = nlohmann::json::parse(response->body, nullptr, /*allow_exceptions=*/false);
  if (!page.is_object() || !page.contains("items") || !page["items"].is_array() ||
      !page.contains("metadata"))
    return failure("list nodes: the answer is not a list");
  return page;
}

}  // namespace

bool EventLines::add(std::string_view piece, const std::function<void(const std::string&)>& take) {
  while (!piece.empty()) {
    const std::size_t end = piece.find('\n');
    const std::string_view rest = piece.substr(0, end);
    if (part_.size() + rest.size() > kMaxLine) return false;
    part_ += rest;
    if (end == std::string_view::npos) return true;
    take(std::exchange(part_, {}));
    piece.remove_prefix(end + 1);
  }
  return true;
}

Result<> NodeWatch::step() {
  return version_.empty() ? list() : watch();
}

Result<> NodeWatch::list() {
  NodeTable::Summaries all;
  std::string next, version;
  do {
    std::string path = "/api/v1/nodes?limit=" + std::to_string(kPageSize);
    if (!next.empty()) path += "&continue=" + escaped(next);
    const auto page =
        page_of(exchange_({.path = path, .headers = accept("PartialObjectMetadataList")}));
    if (!page) return tl::make_unexpected(page.error());
    for (const nlohmann::json& node : (*page)["items"]) {
      auto [name, summary] = summary_of_node(node);
      if (summary && all.size() < kMaxExtenderNodes) all.emplace(std::move(name), *summary);
    }
    next = text_at((*page)["metadata"], "continue");
    version = text_at((*page)["metadata"], "resourceVersion");
  } while (!next.empty());
  table_.replace(std::move(all));
  version_ = std::move(version);
  has_listed_ = true;
  return {};
}

void NodeWatch::take_event(const std::string& line) {
  const nlohmann::json event = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  const std::string type = text_at(event, "type");
  if (type.empty() || !event.contains("object")) return;
  const nlohmann::json& object = event["object"];
  if (type == "ERROR") {
    error_ = text_at(object, "message");
    version_.clear();
    return;
  }
  if (object.is_object() && object.contains("metadata"))
    if (std::string version = text_at(object["metadata"], "resourceVersion"); !version.empty())
      version_ = std::move(version);
  if (type == "BOOKMARK") return;
  auto [name, summary] = summary_of_node(object);
  if (name.empty()) return;
  table_.set(name, type == "DELETED" ? std::nullopt : std::move(summary));
}

Result<> NodeWatch::watch() {
  EventLines lines;
  error_.clear();
  const HttpRequest request{
      .path = "/api/v1/nodes?watch=1&allowWatchBookmarks=true&resourceVersion=" +
              escaped(version_) + "&timeoutSeconds=" + std::to_string(kWatchTime.count()),
      .headers = accept("PartialObjectMetadata"),
      .on_data = [&](std::string_view piece) {
        return lines.add(piece, [this](const std::string& line) { take_event(line); });
      }};
  const auto response = exchange_(request);
  if (!error_.empty()) return failure("watch nodes: " + error_);
  if (!response) return failure("watch nodes: " + response.error().what);
  if (response->good()) return {};
  version_.clear();  // 410: it is too old
  return failure("watch nodes: " + error_text(*response));
}

}  // namespace headroom::kube
