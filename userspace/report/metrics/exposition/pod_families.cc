// SPDX-License-Identifier: Apache-2.0
#include "report/metrics/exposition/pod_families.h"

#include "report/metrics/exposition/exposition_text.h"

namespace headroom::report {
namespace {

std::optional<double> always_one(const PodMetricInput&) {
  return 1;
}
std::optional<double> memory_working_set(const PodMetricInput& pod) {
  const auto bytes = pod.record ? working_set(*pod.record) : std::nullopt;
  return bytes ? std::optional(static_cast<double>(bytes->count)) : std::nullopt;
}
std::optional<double> requested(const PodMetricInput& pod) {
  return static_cast<double>(pod.row.memory_request.count);
}
std::optional<double> priority(const PodMetricInput& pod) {
  return pod.row.pod->priority;
}

std::optional<double> ignored_fields(const PodMetricInput& pod) {
  const std::size_t count = pod.row.pod->ignored_fields.size();
  return count > 0 ? std::optional(static_cast<double>(count)) : std::nullopt;
}

std::string_view source_name(PodSource source) {
  switch (source) {
    case PodSource::kManifest:
      return "manifest";
    case PodSource::kCgroupTree:
      return "cgroup";
  }
  return "";
}

std::string info_labels(const PodMetricInput& pod) {
  std::string labels;
  const auto add = [&](std::string_view name, std::string_view value) {
    if (!labels.empty()) labels.push_back(',');
    append_label(labels, name, value);
  };
  add("critical", pod.row.critical ? "true" : "false");
  add("priority_class", pod.row.pod->priority_class);
  add("qos", qos_name(*pod.row.pod, pod.qos_of));
  add("source", source_name(pod.row.pod->source));
  return labels;
}

template <CpuWaitCause Cause>
std::optional<double> cpu_waited(const PodMetricInput& pod) {
  const std::uint64_t ns = pod.cpu_waits ? (*pod.cpu_waits)[Cause] : 0;
  return ns > 0 ? std::optional(static_cast<double>(ns) / 1e9) : std::nullopt;
}

template <CpuWaitCause Cause>
std::string cause_label(const PodMetricInput&) {
  std::string label;
  append_label(label, "cause", name(Cause));
  return label;
}

template <CpuWaitCause Cause>
constexpr PodFamily cpu_waits_of() {
  return {"headroom_pod_cpu_wait_seconds_total",
          "Time in which at least one task of the pod waited for a CPU, by cause. Absent: none.",
          cpu_waited<Cause>, cause_label<Cause>, prometheus::MetricType::Counter};
}

constexpr PodFamily kFamilies[] = {
    {"headroom_pod_info",
     "1 for each known pod. Critical pods are never evicted. source: manifest or cgroup.",
     always_one, info_labels},
    {"headroom_pod_memory_working_set_bytes", "Working set of the pod.", memory_working_set},
    {"headroom_pod_memory_request_bytes", "Memory request of the pod.", requested},
    {"headroom_pod_priority", "Priority of the pod. Lower priority is evicted first.", priority},
    {"headroom_pod_ignored_fields",
     "Fields of the kubelet's description of the pod that could not be parsed and are ignored. "
     "Absent: none.",
     ignored_fields},
    cpu_waits_of<CpuWaitCause::kQuota>(),
    cpu_waits_of<CpuWaitCause::kParentQuota>(),
    cpu_waits_of<CpuWaitCause::kCpuset>(),
    cpu_waits_of<CpuWaitCause::kWeight>(),
    cpu_waits_of<CpuWaitCause::kNode>(),
    cpu_waits_of<CpuWaitCause::kInterrupts>(),
    cpu_waits_of<CpuWaitCause::kPlacement>(),
    cpu_waits_of<CpuWaitCause::kUnknown>(),
};

}  // namespace

std::span<const PodFamily> pod_families() {
  return kFamilies;
}

}  // namespace headroom::report
