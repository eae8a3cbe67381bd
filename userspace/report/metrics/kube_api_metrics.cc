// SPDX-License-Identifier: Apache-2.0
#include "report/metrics/kube_api_metrics.h"

#include "report/metrics/metric_family.h"

#include <array>
#include <optional>
#include <string_view>

#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

using Json = nlohmann::ordered_json;

std::optional<double> number(const Json& part, const char* key) {
  const auto found = part.find(key);
  if (found == part.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

// {"done": 3, "again": 1}: a sample for each key that is known, so that labels are bounded.
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

}  // namespace

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

}  // namespace headroom::report
