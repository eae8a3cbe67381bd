// SPDX-License-Identifier: Apache-2.0
#include "report/summary/resource_page.h"

#include "report/metrics/exposition/exposition_text.h"
#include "report/summary/summary.h"

#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <spdlog/fmt/fmt.h>

namespace headroom::report {
namespace {

using prometheus::MetricType;
using ResourceScope = ResourceMetricsBody::ResourceScope;

struct ResourceMetric {
  std::string_view name;
  std::string_view help;
  ResourceScope scope;
  MetricType type;
  std::optional<double> (*read)(const CgroupTable& table, std::size_t record);
  bool has_timestamp = true;
};

std::optional<double> known(const hr_record& record, hr_u32 group, hr_u64 value,
                            double divisor = 1) {
  if (!(record.valid & group) || value == HR_UNKNOWN) return std::nullopt;
  return static_cast<double>(value) / divisor;
}

std::optional<double> cpu_seconds(const CgroupTable& table, std::size_t i) {
  return known(table.records[i], HR_CPU, table.records[i].cpu_usage_ns, 1e9);
}
std::optional<double> memory_working_set(const CgroupTable& table, std::size_t i) {
  const auto bytes = working_set(table.records[i]);
  return bytes ? std::optional(static_cast<double>(bytes->count)) : std::nullopt;
}
std::optional<double> swapped(const CgroupTable& table, std::size_t i) {
  return known(table.records[i], HR_MEMORY_USAGE, table.records[i].swap_usage);
}
// Only finite limits, as in the kubelet: a cgroup without a limit has no sample.
std::optional<double> swap_limit(const CgroupTable& table, std::size_t i) {
  const hr_record& record = table.records[i];
  if (record.swap_max == HR_NO_LIMIT) return std::nullopt;
  return known(record, HR_MEMORY_LIMITS, record.swap_max);
}
std::optional<double> started(const CgroupTable& table, std::size_t i) {
  const std::uint64_t ns = table.started_ns(i);
  return ns == HR_UNKNOWN ? std::nullopt : std::optional(static_cast<double>(ns) / 1e9);
}

constexpr auto kGauge = MetricType::Gauge;
constexpr auto kCounter = MetricType::Counter;

constexpr ResourceMetric kResourceMetrics[] = {
    {"node_cpu_usage_seconds_total", "CPU time used by the node.", ResourceScope::kNode, kCounter,
     cpu_seconds},
    {"container_cpu_usage_seconds_total", "CPU time used by the container.",
     ResourceScope::kContainer, kCounter, cpu_seconds},
    {"container_memory_working_set_bytes", "Working set of the container.",
     ResourceScope::kContainer, kGauge, memory_working_set},
    {"container_swap_usage_bytes", "Swap in use by the container.", ResourceScope::kContainer,
     kGauge, swapped},
    {"container_swap_limit_bytes", "Swap limit of the container.", ResourceScope::kContainer,
     kGauge, swap_limit},
    {"container_start_time_seconds", "When the container started, in Unix time.",
     ResourceScope::kContainer, kGauge, started, false},
    {"pod_cpu_usage_seconds_total", "CPU time used by the pod.", ResourceScope::kPod, kCounter,
     cpu_seconds},
    {"pod_memory_working_set_bytes", "Working set of the pod.", ResourceScope::kPod, kGauge,
     memory_working_set},
    {"pod_swap_usage_bytes", "Swap in use by the pod.", ResourceScope::kPod, kGauge, swapped},
};

std::string pod_labels(const PodRow& row) {
  std::string labels;
  append_label(labels, "namespace", row.pod->pod_namespace);
  labels.push_back(',');
  append_label(labels, "pod", row.pod->name);
  return labels;
}

std::string container_labels(std::string_view name, const PodRow& row) {
  std::string labels;
  append_label(labels, "container", name);
  return labels + "," + pod_labels(row);
}

}  // namespace

ResourceMetricsBody::ResourceMetricsBody(const SummarySetup& setup, Format format)
    : format_(format), node_(setup.views->node.latest()), cgroups_(setup.views->cgroups.latest()) {
  if (node_) node_time_ = setup.wall_time(node_->at);
  if (!cgroups_) return;
  time_ = setup.wall_time(cgroups_->at);
  const WorkloadIndex index(*cgroups_, setup.names.get());
  std::set<std::string>
      seen;  // a pod and its successor have the same labels: only the first is written
  const auto add = [&](std::vector<Subject>& subjects, std::size_t record, std::string labels) {
    if (seen.insert(labels).second) subjects.push_back({record, std::move(labels)});
  };
  if (const auto root = index.root()) nodes_.push_back({*root, ""});
  for (const PodRow& row : cgroups_->pods) {
    if (const auto own = index.record_of(row.cgroup)) add(pods_, *own, pod_labels(row));
    for (const auto& container_record : index.containers_of(row))
      add(containers_, container_record.record, container_labels(container_record.name, row));
  }
}

// Timestamps: milliseconds in the text format, seconds in OpenMetrics.
std::string ResourceMetricsBody::timestamp(WallTime time) const {
  const auto ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
  if (format_ == Format::kText) return fmt::format(" {}", ms);
  return fmt::format(" {}.{:03}", ms / 1000, ms % 1000);
}

void ResourceMetricsBody::append_family(std::string& out, std::size_t family) const {
  const ResourceMetric& resource_metric = kResourceMetrics[family];
  const auto& subjects = resource_metric.scope == ResourceScope::kNode  ? nodes_
                         : resource_metric.scope == ResourceScope::kPod ? pods_
                                                                        : containers_;
  const std::string at = resource_metric.has_timestamp ? timestamp(time_) : "";
  bool header_written = false;
  for (const Subject& subject : subjects) {
    const auto value = resource_metric.read(*cgroups_, subject.record);
    if (!value) continue;
    if (!header_written)
      append_header(out, format_, resource_metric.name, resource_metric.help, resource_metric.type);
    header_written = true;
    out.append(resource_metric.name);
    if (!subject.labels.empty()) out.append("{").append(subject.labels).append("}");
    out.push_back(' ');
    append_number(out, *value);
    out.append(at).push_back('\n');
  }
}

// From the eviction signal, because the root cgroup has no memory.current.
void ResourceMetricsBody::append_node_memory(std::string& out) const {
  if (!node_) return;
  const auto used = node_working_set(*node_);
  if (!used) return;
  constexpr std::string_view kName = "node_memory_working_set_bytes";
  append_header(out, format_, kName, "Working set of the node.", kGauge);
  out.append(kName).push_back(' ');
  append_number(out, static_cast<double>(*used));
  out.append(timestamp(node_time_)).push_back('\n');
}

// From the eviction signal, because the root cgroup has no memory.swap.current.
void ResourceMetricsBody::append_node_swap(std::string& out) const {
  if (!node_) return;
  const auto& swap = of(node_->observations, Signal::kSwapAvailable);
  if (!swap) return;
  constexpr std::string_view kName = "node_swap_usage_bytes";
  append_header(out, format_, kName, "Swap in use on the node.", kGauge);
  out.append(kName).push_back(' ');
  append_number(out, static_cast<double>(swap->capacity - swap->available));
  out.append(timestamp(node_time_)).push_back('\n');
}

void ResourceMetricsBody::append_errors(std::string& out) const {
  const double failed = node_ && cgroups_ ? 0 : 1;
  for (const std::string_view name : {"resource_scrape_error", "scrape_error"}) {
    append_header(out, format_, name, "1: there is nothing to tell yet.", kGauge);
    out.append(name).push_back(' ');
    append_number(out, failed);
    out.push_back('\n');
  }
}

bool ResourceMetricsBody::append_chunk(std::string& out) {
  const std::size_t families = cgroups_ ? std::size(kResourceMetrics) : 0;
  if (family_ < families) {
    append_family(out, family_++);
    return true;
  }
  if (family_ > families) return false;
  append_node_memory(out);
  append_node_swap(out);
  append_errors(out);
  out.append(exposition_end(format_));
  ++family_;
  return true;
}

}  // namespace headroom::report
