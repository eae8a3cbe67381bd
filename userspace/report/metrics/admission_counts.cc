// SPDX-License-Identifier: Apache-2.0
#include "report/metrics/admission_counts.h"

#include "report/metrics/metric_family.h"

#include <algorithm>
#include <array>

namespace headroom::report {
namespace {

// Reasons with a series of their own. All others share one, so that the number of series is bounded
// (kubelet: recordAdmissionRejection, which has no series of their own for the last four).
constexpr std::array<std::string_view, 9> kReasons{
    "Evicted",      "OutOfcpu", "OutOfmemory", "OutOfephemeral-storage", "OutOfpods",
    "NodeAffinity", "NodeName", "NodePorts",   "TaintToleration"};

std::string_view rejection_label(std::string_view reason) {
  if (const auto known = std::ranges::find(kReasons, reason); known != kReasons.end())
    return *known;
  return reason.starts_with("OutOf") ? "OutOfExtendedResources" : "Other";
}

}  // namespace

void AdmissionCounts::count_rejection(std::string_view reason) {
  const std::lock_guard lock(mutex_);
  ++rejections_[std::string(rejection_label(reason))];
}

void AdmissionCounts::count_preemptions(std::string_view resource, std::uint64_t pods) {
  const std::lock_guard lock(mutex_);
  preemptions_[std::string(resource)] += pods;
}

void AdmissionCounts::append_to(std::vector<prometheus::MetricFamily>& families) const {
  auto rejections =
      MetricFamilyBuilder::counter("kubelet_admission_rejections_total",
                                   "Pods that headroomctl run did not start, by the first reason.");
  auto preemptions = MetricFamilyBuilder::counter(
      "kubelet_preemptions",
      "Pods stopped so that headroomctl run could start a critical pod, by the resource.");
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [reason, count] : rejections_)
      rejections.add(count, {{"reason", reason}});
    for (const auto& [resource, count] : preemptions_)
      preemptions.add(count, {{"preemption_signal", resource}});
  }
  rejections.append_to(families);
  preemptions.append_to(families);
}

}  // namespace headroom::report
