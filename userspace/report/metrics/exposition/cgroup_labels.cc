// SPDX-License-Identifier: Apache-2.0
#include "report/metrics/exposition/cgroup_labels.h"

#include "report/metrics/exposition/exposition_text.h"
#include "report/view/pod_index.h"

namespace headroom::report {
namespace {

// The values of cAdvisor's labels for one cgroup.
struct CadvisorLabels {
  std::string_view container = {}, image = {}, name = {}, pod_namespace = {}, pod = {};
};

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
  // cAdvisor reports containers outside pods too, docker's for one.
  const ContainerIdentity* identity = names && !id.empty() ? names->find(id) : nullptr;
  if (row || identity) cadvisor_labels.name = id;
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
  constexpr std::size_t kNames = 80;  // what the labels need beside the path
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
  }
}

}  // namespace headroom::report
