// SPDX-License-Identifier: Apache-2.0
#include "report/exposition/cgroup_labels.h"

#include "report/exposition/text.h"
#include "report/identity.h"

namespace headroom::report {
namespace {

// What cAdvisor's labels say of one cgroup.
struct Told {
  std::string_view container = {}, image = {}, name = {}, pod_namespace = {}, pod = {};
};

Nicknames nicknames(const CgroupTable& table, const PodIndex& index, ContainerNames* names) {
  Nicknames found;
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

Told told_of(std::string_view path, const PodRow* row, ContainerNames* names,
             CgroupLabels::PodName pod) {
  Told told{.pod_namespace = pod.pod_namespace, .pod = pod.name};
  const Container* container = row ? container_named(*row->pod, path) : nullptr;
  if (container) told.container = container->name;
  const std::string_view id = runtime_id(path);
  // cAdvisor tells of containers outside pods too, docker's for one.
  const ContainerIdentity* identity = names && !id.empty() ? names->find(id) : nullptr;
  if (row || identity) told.name = id;
  if (!identity) return told;
  if (told.container.empty()) told.container = identity->container;
  if (!identity->name.empty()) told.name = identity->name;
  told.image = identity->image;
  return told;
}

void append_labels(std::string& out, std::string_view path, const Told& told) {
  const auto add = [&](std::string_view name, std::string_view value) {
    append_label(out, name, value);
    out.push_back(',');
  };
  add("container", told.container);
  add("id", path);
  add("image", told.image);
  add("name", told.name);
  add("namespace", told.pod_namespace);
  append_label(out, "pod", told.pod);
}

}  // namespace

CgroupLabels::PodName CgroupLabels::name_of(const PodRow& row) const {
  const auto known = nicknames_.find(&row);
  if (known == nicknames_.end()) return {row.pod->pod_namespace, row.pod->name};
  return {known->second.first, known->second.second};
}

CgroupLabels::CgroupLabels(const CgroupTable& table, ContainerNames* names) {
  const PodIndex index(table);
  nicknames_ = nicknames(table, index, names);
  ends_.reserve(table.records.size());
  within_a_pod_.reserve(table.records.size());
  constexpr std::size_t kNames = 80;  // what the labels need beside the path
  text_.reserve(table.identities->paths.size() + table.records.size() * kNames);
  for (std::size_t i = 0; i < table.records.size(); ++i) {
    const std::string_view path = table.path(i);
    const PodRow* row = index.pod_of(table.records[i]);
    const Told told = told_of(path, row, names, row ? name_of(*row) : PodName{});
    if (!path.empty()) append_labels(text_, path, told);
    ends_.push_back(static_cast<std::uint32_t>(text_.size()));
    const bool is_pod = row && row->cgroup.value == table.records[i].id;
    within_a_pod_.push_back(row && !is_pod && told.container.empty());
  }
}

}  // namespace headroom::report
