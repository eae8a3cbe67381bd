// SPDX-License-Identifier: Apache-2.0
#include "report/summary/summary.h"

#include "base/clock.h"
#include "base/json_text.h"
#include "report/disk/pod_disk_usage.h"
#include "report/summary/stats_json.h"
#include "report/view/pod_index.h"

#include <algorithm>
#include <utility>

namespace headroom::report {
namespace {

std::int64_t huge_page_bytes(const NodeView& view) {
  std::int64_t bytes = 0;
  if (!view.status) return bytes;
  for (const auto& [resource, quantity] : view.status->capacity)
    if (resource.starts_with("hugepages-")) bytes += quantity.value();
  return bytes;
}

}  // namespace

std::optional<std::int64_t> node_working_set(const NodeView& view) {
  const auto& signal = of(view.observations, Signal::kMemoryAvailable);
  if (!signal) return std::nullopt;
  const std::int64_t unavailable = signal->capacity - signal->available;
  return std::max<std::int64_t>(0, unavailable - huge_page_bytes(view));
}

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

std::vector<std::size_t> WorkloadIndex::with_descendants(std::size_t record) const {
  std::vector<std::size_t> records{record};
  // A table that mixes two instants could contain a cycle.
  for (std::size_t at = 0; at < records.size() && records.size() <= table_->records.size(); ++at) {
    const std::uint64_t id = table_->records[records[at]].id;
    for (auto child =
             std::lower_bound(by_parent_.begin(), by_parent_.end(), std::pair{id, std::size_t{0}});
         child != by_parent_.end() && child->first == id; ++child)
      records.push_back(child->second);
  }
  return records;
}

namespace {

CgroupReading reading_of(const CgroupTable& table, std::size_t i, WallTime time,
                         const std::string& root) {
  const std::string_view path = table.path(i);  // "/" is the root's
  return {.record = table.records[i],
          .started_ns = table.started_ns(i),
          .usage_nanocores = table.usage_nanocores[i],
          .time = time,
          .directory = root.empty() || path.empty() ? "" : root + std::string(path)};
}

// What NodeStats, PodStats and ContainerStats have in common.
void put_usage(Json& object, const CgroupReading& reading, bool cpu_and_memory) {
  put(object, "cpu", cpu_json(reading));
  put(object, "memory", memory_json(reading));
  if (cpu_and_memory) return;
  put(object, "io", io_json(reading));
  put(object, "swap", swap_json(reading));
}

std::optional<std::size_t> first_of(const WorkloadIndex& index,
                                    const std::vector<std::string>& paths) {
  for (const std::string& path : paths)
    if (const auto at = index.named(path)) return at;
  return std::nullopt;
}

Json cgroup_json(std::string_view name, const CgroupReading& reading, bool cpu_and_memory) {
  Json container{{"name", name}};
  put_start(container, reading.started_ns);
  put_usage(container, reading, cpu_and_memory);
  return container;
}

// The root cgroup has no memory.current, so the node's memory comes from the eviction signal: the
// kubelet's working set and what is available above it.
void put_node_memory(Json& node, const NodeView& view, WallTime time) {
  const auto& signal = of(view.observations, Signal::kMemoryAvailable);
  const auto used = node_working_set(view);
  if (!signal || !used) return;
  Json& memory = node["memory"];
  memory["time"] = rfc3339(time);
  memory["availableBytes"] = signal->available;
  memory["workingSetBytes"] = *used;
}

// As in the kubelet: anonymous memory plus page cache.
void put_node_usage(Json& node, const CgroupReading& root) {
  const hr_record& record = root.record;
  if (!(record.valid & HR_MEMORY_STAT) || record.anon == HR_UNKNOWN || record.file == HR_UNKNOWN)
    return;
  Json& memory = node["memory"];
  memory["time"] = rfc3339(root.time);
  memory["usageBytes"] = record.anon + record.file;
}

const std::optional<Observation>& observed(const NodeView* node, Signal signal) {
  static const std::optional<Observation> kUnknown;
  return node ? of(node->observations, signal) : kUnknown;
}

Json measured_on_nodefs(const FsUsage& used, const NodeView* node, WallTime time) {
  return measured_fs_json(used, observed(node, Signal::kNodeFsAvailable),
                          observed(node, Signal::kNodeFsInodesFree), time);
}

// Writable layers are on containerfs, which may be imagefs or nodefs.
Json measured_on_containerfs(const FsUsage& used, const NodeView* node, WallTime time) {
  if (!observed(node, Signal::kContainerFsAvailable)) return measured_on_nodefs(used, node, time);
  return measured_fs_json(used, observed(node, Signal::kContainerFsAvailable),
                          observed(node, Signal::kContainerFsInodesFree), time);
}

Json volumes_json(const DiskUsage& usage, const NodeView* node, WallTime time) {
  Json volumes;
  for (const VolumeUsage& volume : usage.volumes) {
    Json json = volume.ranked ? measured_on_nodefs(volume.usage, node, time)
                              : measured_fs_json(volume.usage, {}, {}, time);
    if (json.is_null()) continue;
    json["name"] = volume.name;
    volumes.push_back(std::move(json));
  }
  return volumes;
}

}  // namespace

SummaryBody::SummaryBody(const SummarySetup& setup, bool cpu_and_memory)
    : setup_(&setup),
      cpu_and_memory_(cpu_and_memory),
      node_(setup.views->node.latest()),
      cgroups_(setup.views->cgroups.latest()) {
  if (!cgroups_) return;
  index_.emplace(*cgroups_, setup.names.get());
  time_ = setup.wall_time(cgroups_->at);
  if (setup.host && !cpu_and_memory)
    networks_ = network_rows(*cgroups_, setup.host->network, [](std::size_t) { return false; });
}

void SummaryBody::put_node_rest(Json& node) const {
  const NodeView& view = *node_;
  const WallTime time = setup_->wall_time(view.at);
  const auto filesystem = [&](Signal bytes, Signal inodes) {
    return fs_json(of(view.observations, bytes), of(view.observations, inodes), time);
  };
  put(node, "swap", node_swap_json(of(view.observations, Signal::kSwapAvailable), time));
  Json fs = filesystem(Signal::kNodeFsAvailable, Signal::kNodeFsInodesFree);
  if (const auto space =
          setup_->host ? setup_->host->filesystems.of(Signal::kNodeFsAvailable, view.observations)
                       : std::nullopt)
    fs["usedBytes"] = space->used;
  put(node, "fs", std::move(fs));
  // Of these a kubelet's usedBytes and inodesUsed are those of images and layers alone, which the
  // runtime counts.
  const auto runtime_filesystem = [&](Signal bytes, Signal inodes) {
    Json json = filesystem(bytes, inodes);
    if (!json.is_null()) json.erase("inodesUsed");
    return json;
  };
  Json runtime;
  put(runtime, "imageFs",
      runtime_filesystem(Signal::kImageFsAvailable, Signal::kImageFsInodesFree));
  put(runtime, "containerFs",
      runtime_filesystem(Signal::kContainerFsAvailable, Signal::kContainerFsInodesFree));
  put(node, "runtime", std::move(runtime));
  put(node, "rlimit", rlimit_json(of(view.observations, Signal::kPidAvailable), time));
}

// The pod's containers, without its pause container, as in the kubelet.
Json SummaryBody::processes_json(const PodRow& row) const {
  if (!setup_->host) return nullptr;
  std::optional<std::uint64_t> sum;
  for (const auto& container : index_->containers_of(row))
    for (const std::size_t record : index_->with_descendants(container.record)) {
      const auto count = setup_->host->processes.processes_of(cgroups_->path(record));
      if (!count) return nullptr;
      sum = sum.value_or(0) + *count;
    }
  return sum ? Json{{"process_count", *sum}} : Json();
}

Json SummaryBody::container_json(const PodRow& row,
                                 const WorkloadIndex::ContainerRecord& container) const {
  Json json = cgroup_json(container.name,
                          reading_of(*cgroups_, container.record, time_, setup_->cgroup_root),
                          cpu_and_memory_);
  if (cpu_and_memory_ || !row.disk_parts) return json;
  const NodeView* node = node_ ? &*node_ : nullptr;
  const ContainerUsage usage =
      usage_of(*row.disk_parts, container.name, cgroups_->path(container.record));
  put(json, "rootfs", measured_on_containerfs(usage.rootfs, node, time_));
  put(json, "logs", measured_on_nodefs(usage.logs, node, time_));
  return json;
}

void SummaryBody::put_storage(Json& pod, const PodRow& row) const {
  if (!row.disk_parts) return;
  const NodeView* node = node_ ? &*node_ : nullptr;
  put(pod, "volume", volumes_json(*row.disk_parts, node, time_));
  put(pod, "ephemeral-storage",
      measured_on_nodefs(ephemeral_storage(*row.disk_parts), node, time_));
}

// `pod` is null for the node.
void SummaryBody::put_network(Json& object, const PodRow* pod) const {
  const auto row = std::ranges::find(networks_, pod, &NetworkRow::pod);
  if (row != networks_.end()) put(object, "network", network_json(row->devices, time_));
}

std::string SummaryBody::node_text() const {
  Json node{{"nodeName", setup_->node_name}};
  Json& systems = node["systemContainers"] = Json::array();
  if (index_) {
    for (const SystemContainer& system : setup_->system_containers)
      if (const auto at = first_of(*index_, system.paths))
        systems.push_back(cgroup_json(
            system.name, reading_of(*cgroups_, *at, time_, setup_->cgroup_root), cpu_and_memory_));
    if (const auto root = index_->root()) {
      const CgroupReading reading = reading_of(*cgroups_, *root, time_, setup_->cgroup_root);
      put_start(node, reading.started_ns);
      put_usage(node, reading, cpu_and_memory_);
      put_node_usage(node, reading);
    }
  }
  put_network(node, nullptr);
  if (node_) {
    const WallTime time = setup_->wall_time(node_->at);
    put_node_memory(node, *node_, time);
    if (!cpu_and_memory_) put_node_rest(node);
  }
  return to_json_text(node);
}

std::string SummaryBody::pod_text(const PodRow& row) const {
  Json pod{
      {"podRef",
       {{"name", row.pod->name}, {"namespace", row.pod->pod_namespace}, {"uid", row.pod->uid}}}};
  const auto own = index_->record_of(row.cgroup);
  if (own) put_start(pod, cgroups_->started_ns(*own));
  Json& containers = pod["containers"] = Json::array();
  for (const auto& container : index_->containers_of(row))
    containers.push_back(container_json(row, container));
  if (!own) return to_json_text(pod);
  const CgroupReading reading = reading_of(*cgroups_, *own, time_, setup_->cgroup_root);
  put_usage(pod, reading, cpu_and_memory_);
  if (cpu_and_memory_) return to_json_text(pod);
  put_network(pod, &row);
  put_storage(pod, row);
  put(pod, "process_stats", processes_json(row));
  return to_json_text(pod);
}

bool SummaryBody::append_chunk(std::string& out) {
  switch (next_) {
    case Next::kNode:
      out.append("{\"node\":").append(node_text()).append(",\"pods\":[");
      next_ = Next::kPods;
      return true;
    case Next::kPods:
      if (!cgroups_ || pod_ == cgroups_->pods.size()) {
        out.append("]}\n");
        next_ = Next::kNothing;
        return true;
      }
      if (pod_ > 0) out.push_back(',');
      out.append(pod_text(cgroups_->pods[pod_++]));
      return true;
    case Next::kNothing:
      return false;
  }
  return false;
}

}  // namespace headroom::report
