// SPDX-License-Identifier: Apache-2.0
#include "report/summary/workload_index.h"

#include "report/view/pod_index.h"

#include <algorithm>

namespace headroom::report {

WorkloadIndex::WorkloadIndex(const CgroupTable& table, ContainerNames* names)
    : table_(&table), names_(names) {
  by_id_.reserve(table.records.size());
  by_parent_.reserve(table.records.size());
  for (std::size_t i = 0; i < table.records.size(); ++i) {
    const hr_record& record = table.records[i];
    by_id_.emplace(record.id, i);
    by_parent_.emplace_back(record.parent_id, i);
    if (record.parent_id == 0) root_ = i;
  }
  std::sort(by_parent_.begin(), by_parent_.end());
}

std::optional<std::size_t> WorkloadIndex::record_of(CgroupId id) const {
  const auto found = by_id_.find(id.value);
  return found == by_id_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::size_t> WorkloadIndex::named(std::string_view path) const {
  for (std::size_t i = 0; i < table_->records.size(); ++i)
    if (table_->path(i) == path) return i;
  return std::nullopt;
}

std::string WorkloadIndex::name_of(const PodRow& pod, std::string_view path) const {
  if (const Container* container = container_named(*pod.pod, path)) return container->name;
  const std::string_view id = runtime_id(path);
  const ContainerIdentity* identity = names_ && !id.empty() ? names_->find(id) : nullptr;
  return identity ? identity->container : "";
}

std::vector<WorkloadIndex::ContainerRecord> WorkloadIndex::containers_of(const PodRow& pod) const {
  std::vector<ContainerRecord> container_records;
  const auto first = std::lower_bound(by_parent_.begin(), by_parent_.end(),
                                      std::pair{pod.cgroup.value, std::size_t{0}});
  for (auto child = first; child != by_parent_.end() && child->first == pod.cgroup.value; ++child) {
    std::string name = name_of(pod, table_->path(child->second));
    if (!name.empty()) container_records.push_back({std::move(name), child->second});
  }
  return container_records;
}

}  // namespace headroom::report
