// SPDX-License-Identifier: Apache-2.0
#include "report/metrics/kube_metrics.h"

#include "report/metrics/kube_api_metrics.h"
#include "report/metrics/metric_family.h"
#include "report/status/kube_status.h"

#include <cstdint>
#include <string_view>

#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

using Json = nlohmann::ordered_json;

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

}  // namespace

void add_kubernetes_families(const std::filesystem::path& file,
                             std::vector<prometheus::MetricFamily>& families) {
  const Json json = kubernetes_json(file);
  if (!json.is_object()) return;
  if (const auto kubelet = json.find("kubelet"); kubelet != json.end() && kubelet->is_object())
    add_kubelet(*kubelet, families);
  if (const auto api = json.find("api"); api != json.end() && api->is_object())
    add_api_families(*api, families);
}

}  // namespace headroom::report
