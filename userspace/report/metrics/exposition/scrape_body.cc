// SPDX-License-Identifier: Apache-2.0
#include "report/metrics/exposition/scrape_body.h"

#include "report/metrics/exposition/exposition_text.h"
#include "report/view/pod_index.h"

#include <headroom/snapshot.h>

#include <fnmatch.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace headroom::report {
namespace {

// The values of cAdvisor's labels for one cgroup.
struct CadvisorLabels {
  std::string_view container = {}, image = {}, name = {}, pod_namespace = {}, pod = {};
  // The runtime does not say what this is: one of the pod's containers, or its pause container.
  bool unknown_container = false;
};

// The cgroups above pods.
std::unordered_set<std::uint64_t> cgroups_above_pods(const CgroupTable& table,
                                                     const PodIndex& index) {
  std::unordered_set<std::uint64_t> found;
  for (const PodRow& row : table.pods)
    for (const hr_record* record = index.record_of(row.cgroup);
         record && record->parent_id != 0 && found.insert(record->parent_id).second;)
      record = index.record_of(CgroupId{record->parent_id});
  return found;
}

// "/" and "/system.slice".
bool is_top_level(std::string_view path) {
  return path.find('/', 1) == std::string_view::npos;
}

RuntimePodNames runtime_pod_names(const CgroupTable& table, const PodIndex& index,
                                  ContainerNames* names) {
  RuntimePodNames found;
  if (!names) return found;
  for (std::size_t i = 0; i < table.records.size(); ++i) {
    const std::string_view id = runtime_id(table.path(i));
    if (id.empty()) continue;
    const PodRow* row = index.pod_of(table.records[i]);
    if (!row || row->pod->source != PodSource::kCgroupTree || found.contains(row)) continue;
    const ContainerIdentity* identity = names->find(id);
    if (identity && !identity->pod.empty())
      found.try_emplace(row, identity->pod_namespace, identity->pod);
  }
  return found;
}

CadvisorLabels cadvisor_labels_of(std::string_view path, const PodRow* row, ContainerNames* names,
                                  CgroupLabels::PodName pod) {
  CadvisorLabels cadvisor_labels{.pod_namespace = pod.pod_namespace, .pod = pod.name};
  const Container* container = row ? container_named(*row->pod, path) : nullptr;
  if (container) cadvisor_labels.container = container->name;
  const std::string_view id = runtime_id(path);
  // cAdvisor also reports containers outside pods, such as docker's.
  const ContainerIdentity* identity = names && !id.empty() ? names->find(id) : nullptr;
  if (row || identity) cadvisor_labels.name = id;
  cadvisor_labels.unknown_container =
      row && !identity && !id.empty() && cadvisor_labels.container.empty();
  if (!identity) return cadvisor_labels;
  if (cadvisor_labels.container.empty()) cadvisor_labels.container = identity->container;
  if (!identity->name.empty()) cadvisor_labels.name = identity->name;
  cadvisor_labels.image = identity->image;
  return cadvisor_labels;
}

void append_labels(std::string& out, std::string_view path, const CadvisorLabels& cadvisor_labels) {
  const auto add = [&](std::string_view name, std::string_view value) {
    append_label(out, name, value);
    out.push_back(',');
  };
  add("container", cadvisor_labels.container);
  add("id", path);
  add("image", cadvisor_labels.image);
  add("name", cadvisor_labels.name);
  add("namespace", cadvisor_labels.pod_namespace);
  append_label(out, "pod", cadvisor_labels.pod);
}

}  // namespace

CgroupLabels::PodName CgroupLabels::name_of(const PodRow& row) const {
  const auto known = runtime_pod_names_.find(&row);
  if (known == runtime_pod_names_.end()) return {row.pod->pod_namespace, row.pod->name};
  return {known->second.first, known->second.second};
}

CgroupLabels::CgroupLabels(const CgroupTable& table, ContainerNames* names) {
  const PodIndex index(table);
  runtime_pod_names_ = runtime_pod_names(table, index, names);
  ends_.reserve(table.records.size());
  is_pod_internal_.reserve(table.records.size());
  smallest_scope_.reserve(table.records.size());
  is_of_node_.reserve(table.records.size());
  const auto above_pods = cgroups_above_pods(table, index);
  constexpr std::size_t kNames = 80;  // bytes of labels besides the path, an estimate
  text_.reserve(table.identities->paths.size() + table.records.size() * kNames);
  for (std::size_t i = 0; i < table.records.size(); ++i) {
    const std::string_view path = table.path(i);
    const PodRow* row = index.pod_of(table.records[i]);
    const CadvisorLabels cadvisor_labels =
        cadvisor_labels_of(path, row, names, row ? name_of(*row) : PodName{});
    if (!path.empty()) append_labels(text_, path, cadvisor_labels);
    ends_.push_back(static_cast<std::uint32_t>(text_.size()));
    const bool is_pod = row && row->cgroup.value == table.records[i].id;
    is_pod_internal_.push_back(row && !is_pod && cadvisor_labels.container.empty());
    is_of_node_.push_back(!is_pod &&
                          (is_top_level(path) || above_pods.contains(table.records[i].id)));
    // Without a container runtime a container is a service in the slice of its pod.
    const bool is_service =
        row && table.records[i].parent_id == row->cgroup.value && path.ends_with(".service");
    const bool is_container =
        row && (!cadvisor_labels.container.empty() || cadvisor_labels.unknown_container);
    if (is_pod || is_of_node_.back())
      smallest_scope_.push_back(CgroupScope::kPods);
    else if (is_container || is_service)
      smallest_scope_.push_back(CgroupScope::kContainers);
    else
      smallest_scope_.push_back(CgroupScope::kAll);
  }
}

bool CgroupLabels::is_in(CgroupScope scope, std::size_t record) const {
  return smallest_scope_[record] <= scope;
}

bool matches_any(const std::string& name, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  });
}

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

namespace {

constexpr std::size_t kRecordsPerChunk = 32;

void append_sample(std::string& out, std::string_view name, std::string_view labels,
                   std::string_view extra_labels, double value) {
  out.append(name).append("{").append(labels);
  if (!extra_labels.empty()) out.append(",").append(extra_labels);
  out.append("} ");
  append_number(out, value);
  out.push_back('\n');
}

// The labels include the uid: a terminating pod and its successor may have the same name.
std::string labels_of(CgroupLabels::PodName name, const Pod& pod) {
  std::string labels;
  append_label(labels, "namespace", name.pod_namespace);
  labels.push_back(',');
  append_label(labels, "pod", name.name);
  labels.push_back(',');
  append_label(labels, "uid", pod.uid);
  return labels;
}

}  // namespace

ScrapeBody::ScrapeBody(ScrapeSetup setup) : setup_(std::move(setup)) {
  if (!setup_.cgroups) return;
  labels_.emplace(*setup_.cgroups, setup_.names);
  index_.emplace(*setup_.cgroups);
  waits_.emplace(*setup_.cgroups);
  cpu_waits_ = cpu_waits_by_pod(*setup_.cgroups);
  select_families();
  if (setup_.host && setup_.cadvisor_families)
    host_samples_.emplace(
        *setup_.cgroups, *setup_.host, setup_.observations,
        HostSelection{
            .is_wanted = [this](HostSource source) { return is_wanted(source); },
            // As in cAdvisor, whose counters of a pod's network are its pause container's.
            .is_pod_internal =
                [this](std::size_t record) { return labels_->is_pod_internal(record); },
            .has_series =
                [this](std::size_t record) { return labels_->is_in(setup_.scope, record); }});
}

bool ScrapeBody::is_excluded(std::string_view family) const {
  return matches_any(std::string(family), setup_.exclude);
}

bool ScrapeBody::is_wanted(HostSource source) const {
  return std::ranges::any_of(host_families(), [&](const HostFamily& family) {
    return family.source == source && !is_excluded(family.name);
  });
}

void ScrapeBody::select_families() {
  const auto wanted = [&](const CgroupFamily& family, std::string_view name) {
    if (is_excluded(name)) return false;
    return family.is_cadvisor_metric() ? setup_.cadvisor_families : setup_.headroom_families;
  };
  for (const CgroupFamily& family : cgroup_families())
    if (wanted(family, family.name)) families_.push_back({family, family.name, family.help});
  for (const CgroupFamilyAlias& alias : setup_.aliases)
    for (const CgroupFamily& family : cgroup_families())
      if (family.name == alias.family && wanted(family, alias.name))
        families_.push_back({family, alias.name, alias.help});
}

bool ScrapeBody::append_own(std::string& out) {
  if (next_own_ == setup_.own_families.size()) return false;
  append_family(out, setup_.format, setup_.own_families[next_own_++]);
  return true;
}

bool ScrapeBody::append_cgroups(std::string& out) {
  if (cgroup_family_ == families_.size()) return false;
  append_records(out);
  if (record_ < setup_.cgroups->records.size()) return true;
  const std::string_view current = families_[cgroup_family_++].name;
  record_ = 0;
  // Rows of one name that differ in their labels are one family.
  header_written_ &= cgroup_family_ < families_.size() && families_[cgroup_family_].name == current;
  return true;
}

std::string_view ScrapeBody::labels_for(const CgroupFamily& family) {
  const std::string_view labels = labels_->of(record_);
  if (labels.empty()) return "";
  own_labels_.clear();
  switch (family.of) {
    case FamilyOf::kCgroups: {
      const bool hidden = (family.groups & HR_PSI) && labels_->is_pod_internal(record_);
      return hidden || !labels_->is_in(setup_.scope, record_) ? "" : labels;
    }
    case FamilyOf::kPods: {
      const hr_record& record = setup_.cgroups->records[record_];
      const PodRow* const row = index_->pod_of(record);
      if (row && row->cgroup.value == record.id)
        own_labels_ = labels_of(labels_->name_of(*row), *row->pod);
      return own_labels_;
    }
    case FamilyOf::kNode:
      if (labels_->is_of_node(record_))
        append_label(own_labels_, "id", setup_.cgroups->path(record_));
      return own_labels_;
  }
  return "";
}

// Appends some records of the current family.
void ScrapeBody::append_records(std::string& out) {
  const CgroupTable& table = *setup_.cgroups;
  const auto& [family, name, help] = families_[cgroup_family_];
  const std::size_t end = std::min(record_ + kRecordsPerChunk, table.records.size());
  for (; record_ < end; ++record_) {
    const std::string_view labels = labels_for(family);
    if (labels.empty()) continue;
    const auto value = family.value({.record = table.records[record_],
                                     .started_ns = table.started_ns(record_),
                                     .read_at_ns = setup_.read_at_ns,
                                     .stalls = waits_->stalls(record_),
                                     .throttles = waits_->throttles(record_)});
    if (!value) continue;
    if (!header_written_) append_header(out, setup_.format, name, help, family.type);
    header_written_ = true;
    append_sample(out, name, labels, family.extra_labels, *value);
  }
}

bool ScrapeBody::append_host(std::string& out) {
  if (!host_samples_ || host_family_ == host_families().size()) return false;
  const HostFamily& family = host_families()[host_family_++];
  if (is_excluded(family.name)) return true;
  bool has_header = false;
  for (const HostSample& sample : host_samples_->of(family.source)) {
    const auto& value = sample.values[family.value];
    const std::string_view labels = labels_->of(sample.record);
    if (!value || labels.empty()) continue;
    if (!std::exchange(has_header, true))
      append_header(out, setup_.format, family.name, family.help, family.type);
    append_sample(out, family.name, labels, sample.extra_labels, *value);
  }
  return true;
}

bool ScrapeBody::append_pods(std::string& out) {
  if (!setup_.cgroups || !setup_.headroom_families || pod_family_ == pod_families().size())
    return false;
  const PodFamily& family = pod_families()[pod_family_];
  const bool continues = pod_family_ > 0 && pod_families()[pod_family_ - 1].name == family.name;
  header_written_ = header_written_ && continues;
  ++pod_family_;
  if (is_excluded(family.name)) return true;
  for (const PodRow& row : setup_.cgroups->pods) {
    const auto waits = cpu_waits_.find(row.cgroup.value);
    const PodMetricInput pod{.row = row,
                             .record = index_->record_of(row.cgroup),
                             .qos_of = setup_.qos_of,
                             .cpu_waits = waits == cpu_waits_.end() ? nullptr : waits->second};
    const auto value = family.read(pod);
    if (!value) continue;
    if (!header_written_) append_header(out, setup_.format, family.name, family.help, family.type);
    header_written_ = true;
    append_sample(out, family.name, labels_of(labels_->name_of(row), *row.pod),
                  family.extra_labels ? family.extra_labels(pod) : "", *value);
  }
  return true;
}

bool ScrapeBody::append_chunk(std::string& out) {
  if (append_own(out) || append_cgroups(out) || append_host(out) || append_pods(out)) return true;
  if (std::exchange(ended_, true)) return false;
  out.append(exposition_end(setup_.format));
  return true;
}

}  // namespace headroom::report
