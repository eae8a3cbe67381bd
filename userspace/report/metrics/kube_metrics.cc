// SPDX-License-Identifier: Apache-2.0
#include "report/metrics/kube_metrics.h"

#include "report/metrics/metric_family.h"
#include "report/status/status_parts.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>
#include <prometheus/metric_family.h>

namespace headroom::report {
namespace {

using Json = nlohmann::ordered_json;

std::optional<double> number(const Json& part, const char* key) {
  const auto found = part.find(key);
  if (found == part.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

// Adds a sample for each known key of an object such as {"done": 3, "again": 1}. Other keys are
// ignored, so that the number of label values is limited.
template <std::size_t N>
void add_each(const Json& part, const char* key, std::string_view label,
              const std::array<const char*, N>& names, MetricFamilyBuilder family,
              std::vector<prometheus::MetricFamily>& families) {
  const auto found = part.find(key);
  if (found == part.end() || !found->is_object()) return;
  for (const char* name : names)
    family.add(number(*found, name), {{label, name}});
  family.append_to(families);
}

// `part` is "api" of the status file, an object; a missing value has no family.
void add_api_families(const Json& part, std::vector<prometheus::MetricFamily>& families) {
  const auto add = [&](const char* key, MetricFamilyBuilder family) {
    family.add(number(part, key));
    family.append_to(families);
  };
  if (part.contains("server")) {
    auto up = MetricFamilyBuilder::gauge("headroom_kube_api_up",
                                         "1 if the last request to the API server succeeded.");
    up.add(part.contains("error") ? 0.0 : 1.0);
    up.append_to(families);
  }
  add("pending", MetricFamilyBuilder::gauge("headroom_kube_evictions_pending",
                                            "Evictions not yet fully reported to the API server."));
  add("reported", MetricFamilyBuilder::counter("headroom_kube_evictions_reported_total",
                                               "Evictions fully reported to the API server."));
  add("delaySumSeconds", MetricFamilyBuilder::counter(
                             "headroom_kube_evictions_report_delay_seconds_total",
                             "Sum of the time from the decision until the eviction was reported."));
  add("podGone", MetricFamilyBuilder::counter(
                     "headroom_kube_evictions_pod_gone_total",
                     "Evictions whose pod no longer existed in the API when they were reported."));
  add("auditLinesSkipped",
      MetricFamilyBuilder::counter(
          "headroom_kube_audit_lines_skipped_total",
          "Lines of the audit log that were invalid, or rotated away before they were read."));
  add("stateWriteFailures",
      MetricFamilyBuilder::counter("headroom_kube_state_write_failures_total",
                                   "Failed writes of headroom-kube's state file."));
  constexpr std::array kResponseClasses{"done", "gone", "again", "refused", "server"};
  add_each(part, "requests", "answer", kResponseClasses,
           MetricFamilyBuilder::counter("headroom_kube_api_requests_total",
                                        "Requests to the API server, by result."),
           families);
}

void add_number(const Json& part, const char* key, MetricFamilyBuilder family,
                std::vector<prometheus::MetricFamily>& families) {
  const auto found = part.find(key);
  if (found == part.end() || !found->is_number()) return;
  family.add(found->get<double>());
  family.append_to(families);
}

void add_kubelet(const Json& part, std::vector<prometheus::MetricFamily>& families) {
  if (const auto last_poll_ok = part.find("lastPollSucceeded");
      last_poll_ok != part.end() && last_poll_ok->is_boolean()) {
    auto up = MetricFamilyBuilder::gauge("headroom_kube_kubelet_up",
                                         "1 if the last poll of the kubelet succeeded.");
    up.add(last_poll_ok->get<bool>() ? 1.0 : 0.0);
    up.append_to(families);
  }
  add_number(
      part, "polls",
      MetricFamilyBuilder::counter("headroom_kube_polls_total", "Polls of the kubelet's pod list."),
      families);
  add_number(part, "failedPolls",
             MetricFamilyBuilder::counter("headroom_kube_polls_failed_total",
                                          "Failed polls of the kubelet's pod list."),
             families);
  add_number(part, "pods",
             MetricFamilyBuilder::gauge("headroom_kube_pods", "Pods in the last successful poll."),
             families);
  if (part.value("podsAt", std::int64_t{0}) > 0)
    add_number(part, "podsAt",
               MetricFamilyBuilder::gauge("headroom_kube_pods_timestamp_seconds",
                                          "Unix time of the last successful poll."),
               families);
  add_number(part, "filesWritten",
             MetricFamilyBuilder::counter("headroom_kube_pod_files_written_total",
                                          "Pod files written because a pod changed."),
             families);
}

// 1 or 0 for each advice that is known.
void add_advice(const Json& advice, std::vector<prometheus::MetricFamily>& families) {
  constexpr std::array<std::pair<const char*, const char*>, 3> kAdvices{
      {{"HeadroomMemoryContention", "memory-contention"},
       {"HeadroomCPUContention", "cpu-contention"},
       {"HeadroomShortageExpected", "shortage-expected"}}};
  auto family = MetricFamilyBuilder::gauge(
      "headroom_kube_scheduling_advice",
      "1 while the scheduler is advised against the node for this reason.");
  for (const auto& [key, label] : kAdvices)
    if (const auto found = advice.find(key); found != advice.end() && found->is_boolean())
      family.add(found->get<bool>() ? 1.0 : 0.0, {{"advice", label}});
  family.append_to(families);
}

void add_scheduling(const Json& part, std::vector<prometheus::MetricFamily>& families) {
  if (const auto advice = part.find("advice"); advice != part.end() && advice->is_object())
    add_advice(*advice, families);
  constexpr std::array kObjects{"taints", "annotation", "status"};
  add_each(part, "writes", "object", kObjects,
           MetricFamilyBuilder::counter("headroom_kube_scheduling_writes_total",
                                        "Writes to the Node object for the scheduler."),
           families);
}

}  // namespace

void add_kubernetes_families(const std::filesystem::path& file,
                             std::vector<prometheus::MetricFamily>& families) {
  const Json json = kubernetes_json(file);
  if (!json.is_object()) return;
  if (const auto kubelet = json.find("kubelet"); kubelet != json.end() && kubelet->is_object())
    add_kubelet(*kubelet, families);
  if (const auto api = json.find("api"); api != json.end() && api->is_object())
    add_api_families(*api, families);
  if (const auto part = json.find("scheduling"); part != json.end() && part->is_object())
    add_scheduling(*part, families);
}

}  // namespace headroom::report
