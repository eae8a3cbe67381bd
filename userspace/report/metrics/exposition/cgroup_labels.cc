// SPDX-License-Identifier: Apache-2.0
#include "report/metrics/exposition/cgroup_labels.h"

#include "report/metrics/exposition/exposition_text.h"

#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace headroom::report {
namespace {

struct PodName {
  std::string_view pod_namespace, name;
};

// For pods without a manifest: the namespace and name that the runtime reports for one of their
// containers.
using RuntimePodNames = std::unordered_map<const PodRow*, std::pair<std::string, std::string>>;

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
                                  PodName pod) {
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

PodName name_of(const PodRow& row, const RuntimePodNames& runtime_names) {
  const auto known = runtime_names.find(&row);
  if (known == runtime_names.end()) return {row.pod->pod_namespace, row.pod->name};
  return {known->second.first, known->second.second};
}

void append_pod_labels(std::string& out, PodName name, const Pod& pod) {
  append_label(out, "namespace", name.pod_namespace);
  out.push_back(',');
  append_label(out, "pod", name.name);
  out.push_back(',');
  append_label(out, "uid", pod.uid);
}

}  // namespace

void LabelTexts::reserve(std::size_t count, std::size_t bytes) {
  text_.reserve(bytes);
  ends_.reserve(count);
}

CgroupLabels::CgroupLabels(const CgroupTable& table, const PodIndex& index, ContainerNames* names) {
  const RuntimePodNames runtime_names = runtime_pod_names(table, index, names);
  const std::size_t count = table.records.size();
  constexpr std::size_t kNames = 80;  // bytes of labels besides the path, an estimate
  cgroups_.reserve(count, table.identities->paths.size() + count * kNames);
  pods_.reserve(table.pods.size(), table.pods.size() * kNames);
  node_.reserve(count, 0);
  is_pod_internal_.reserve(count);
  smallest_scope_.reserve(count);
  const auto above_pods = cgroups_above_pods(table, index);
  for (const PodRow& row : table.pods)
    pods_.add(
        [&](std::string& out) { append_pod_labels(out, name_of(row, runtime_names), *row.pod); });
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view path = table.path(i);
    const PodRow* row = index.pod_of(table.records[i]);
    const CadvisorLabels cadvisor_labels =
        cadvisor_labels_of(path, row, names, row ? name_of(*row, runtime_names) : PodName{});
    cgroups_.add([&](std::string& out) {
      if (!path.empty()) append_labels(out, path, cadvisor_labels);
    });
    const bool is_pod = row && row->cgroup.value == table.records[i].id;
    is_pod_internal_.push_back(row && !is_pod && cadvisor_labels.container.empty());
    const bool is_of_node =
        !is_pod && (is_top_level(path) || above_pods.contains(table.records[i].id));
    node_.add([&](std::string& out) {
      if (is_of_node && !path.empty()) append_label(out, "id", path);
    });
    // Without a container runtime a container is a service in the slice of its pod.
    const bool is_service =
        row && table.records[i].parent_id == row->cgroup.value && path.ends_with(".service");
    const bool is_container =
        row && (!cadvisor_labels.container.empty() || cadvisor_labels.unknown_container);
    if (is_pod || is_of_node)
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

}  // namespace headroom::report
