// SPDX-License-Identifier: Apache-2.0
#include "kube/api/pod_requests.h"

#include "base/json_text.h"
#include "kube/api/api_response.h"

#include <headroom/signal.h>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

namespace headroom::kube {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kStrategic = "application/strategic-merge-patch+json";
constexpr std::string_view kMerge = "application/merge-patch+json";
constexpr std::size_t kLongestName = 253;  // an object's name is a DNS subdomain

HttpRequest request_with_body(std::string method, std::string path, std::string_view type,
                              const Json& body) {
  return {.method = std::move(method),
          .path = std::move(path),
          .headers = {{"Content-Type", std::string(type)}},
          .body = to_json_text(body)};
}

// The condition DisruptionTarget. A pod that exceeded its own limit gets none, as in the kubelet; a
// pod that is evicted for a taint gets the reason of the upstream taint eviction controller.
Json disruption(const EvictionRecord& evicted) {
  if (evicted.cause == EvictionRecord::Cause::kLimit) return nullptr;
  const bool taint = evicted.cause == EvictionRecord::Cause::kTaint;
  return {{"type", "DisruptionTarget"},
          {"status", "True"},
          {"lastTransitionTime", evicted.time},
          {"reason", taint ? "DeletionByTaintManager" : "TerminationByKubelet"},
          {"message", evicted.message}};
}

Json delete_options(const EvictionRecord& evicted) {
  return {{"apiVersion", "v1"},
          {"kind", "DeleteOptions"},
          {"gracePeriodSeconds", kGraceSeconds},
          {"preconditions", {{"uid", evicted.uid}}}};
}

std::string events_path(const EvictionRecord& evicted) {
  return "/api/v1/namespaces/" + escaped(evicted.pod_namespace) + "/events";
}

Json annotations(const EvictionRecord& evicted) {
  Json json = Json::object();
  const auto signal = signal_named(evicted.signal);
  if (evicted.cause == EvictionRecord::Cause::kThreshold && signal)
    json["starved_resource"] = resource_of(*signal);
  return json;
}

}  // namespace

std::string escaped(std::string_view segment) {
  std::string text;
  for (const char c : segment) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.';
    if (plain)
      text += c;
    else
      text += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return text;
}

std::string pod_path(const EvictionRecord& evicted) {
  return "/api/v1/namespaces/" + escaped(evicted.pod_namespace) + "/pods/" + escaped(evicted.name);
}

HttpRequest pod_status_patch(const PendingEviction& pending) {
  const EvictionRecord& evicted = pending.evicted;
  Json status{{"phase", "Failed"}, {"reason", "Evicted"}, {"message", evicted.message}};
  if (Json condition = disruption(evicted); !condition.is_null())
    status["conditions"] = Json::array({std::move(condition)});
  return request_with_body(
      "PATCH", pod_path(evicted) + "/status?fieldManager=" + std::string(kManager), kStrategic,
      {{"metadata", {{"uid", evicted.uid}}}, {"status", std::move(status)}});
}

HttpRequest pod_eviction(const PendingEviction& pending) {
  const EvictionRecord& evicted = pending.evicted;
  return request_with_body(
      "POST", pod_path(evicted) + "/eviction", kJson,
      {{"apiVersion", pending.old_eviction ? "policy/v1beta1" : "policy/v1"},
       {"kind", "Eviction"},
       {"metadata", {{"namespace", evicted.pod_namespace}, {"name", evicted.name}}},
       {"deleteOptions", delete_options(evicted)}});
}

HttpRequest pod_deletion(const PendingEviction& pending) {
  return request_with_body("DELETE", pod_path(pending.evicted), kJson,
                           delete_options(pending.evicted));
}

HttpRequest pod_get(const PendingEviction& pending) {
  return {.method = "GET", .path = pod_path(pending.evicted)};
}

std::string event_name(const PendingEviction& pending) {
  const std::string end = "." + pending.first_stamp;
  std::string start = pending.evicted.name.substr(0, kLongestName - end.size());
  while (!start.empty() && (start.back() == '-' || start.back() == '.'))
    start.pop_back();
  return start + end;
}

HttpRequest event_creation(const PendingEviction& pending, const PendingEvictionOptions& options) {
  const EvictionRecord& evicted = pending.evicted;
  return request_with_body("POST", events_path(evicted) + "?fieldManager=" + std::string(kManager),
                           kJson,
                           {{"apiVersion", "v1"},
                            {"kind", "Event"},
                            {"metadata",
                             {{"name", event_name(pending)},
                              {"namespace", evicted.pod_namespace},
                              {"annotations", annotations(evicted)}}},
                            {"involvedObject",
                             {{"apiVersion", "v1"},
                              {"kind", "Pod"},
                              {"namespace", evicted.pod_namespace},
                              {"name", evicted.name},
                              {"uid", evicted.uid}}},
                            {"type", "Warning"},
                            {"reason", "Evicted"},
                            {"message", evicted.message},
                            {"source", {{"component", kManager}, {"host", options.node_name}}},
                            {"firstTimestamp", pending.first_time},
                            {"lastTimestamp", evicted.time},
                            {"count", pending.count},
                            {"reportingComponent", kManager},
                            {"reportingInstance", options.node_name}});
}

HttpRequest event_patch(const PendingEviction& pending) {
  const EvictionRecord& evicted = pending.evicted;
  const std::string path = events_path(evicted) + "/" + escaped(event_name(pending));
  return request_with_body(
      "PATCH", path + "?fieldManager=" + std::string(kManager), kMerge,
      {{"message", evicted.message}, {"lastTimestamp", evicted.time}, {"count", pending.count}});
}

}  // namespace headroom::kube
