// SPDX-License-Identifier: Apache-2.0
// Summary: /stats/summary, the kubelet's Summary API (v1alpha1), written pod by pod.
#pragma once

#include "report/eviction/audit_line.h"
#include "report/host/host_readers.h"
#include "report/http/response_body.h"
#include "report/view/node_view.h"
#include "report/view/published_views.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace headroom::report {

// node_working_set(): the memory that the node's processes and active page cache use.

// In bytes; absent: memory.available is not known. The signal counts preallocated huge pages as not
// available. They are no part of the kubelet's working set, used or not, so they are subtracted.
std::optional<std::int64_t> node_working_set(const NodeView& view);

// WorkloadIndex: a table's pods with the records of their own cgroups and of their containers.

class WorkloadIndex {
 public:
  // `names` may be null: then only manifests and paths are used.
  explicit WorkloadIndex(const CgroupTable& table, ContainerNames* names = nullptr);

  // Positions in table.records.
  std::optional<std::size_t> record_of(CgroupId id) const;
  std::optional<std::size_t> root() const { return root_; }
  // By path from the cgroup root: "/system.slice".
  std::optional<std::size_t> named(std::string_view path) const;

  struct ContainerRecord {
    std::string name;
    std::size_t record = 0;
  };
  // The containers of a pod that have a cgroup and a name, in the table's order.
  std::vector<ContainerRecord> containers_of(const PodRow& pod) const;
  // The record, then those of all cgroups below it.
  std::vector<std::size_t> with_descendants(std::size_t record) const;

 private:
  std::string name_of(const PodRow& pod, std::string_view path) const;

  const CgroupTable* table_;
  ContainerNames* names_;
  std::unordered_map<std::uint64_t, std::size_t> by_id_;
  std::vector<std::pair<std::uint64_t, std::size_t>> by_parent_;  // sorted
  std::optional<std::size_t> root_;
};

// A system container: its name in the Summary API ("kubelet", "runtime", "misc", "pods") and its
// cgroup, the first of these paths that exists.
struct SystemContainer {
  std::string name;
  std::vector<std::string> paths;  // "/kube.slice"
};

struct SummarySetup {
  std::shared_ptr<PublishedViews> views = {};
  std::string node_name = {};
  std::vector<SystemContainer> system_containers = {};
  std::shared_ptr<ContainerNames> names = {};  // used on the scraper's thread; may be null
  std::function<WallTime(Instant)> wall_time = wall_time_of;
  std::string cgroup_root = {};  // "/sys/fs/cgroup"; "": averages of pressure are not read
  std::shared_ptr<const HostReaders> host = {};  // null: what it reads is not there
};

class SummaryBody final : public ChunkedBody {
 public:
  // `cpu_and_memory`: only CPU and memory, for ?only_cpu_and_memory=true.
  SummaryBody(const SummarySetup& setup, bool cpu_and_memory);

 private:
  bool append_chunk(std::string& out) override;
  std::string node_text() const;
  std::string pod_text(const PodRow& row) const;
  void put_network(nlohmann::ordered_json& object, const PodRow* pod) const;
  void put_node_rest(nlohmann::ordered_json& node) const;
  void put_storage(nlohmann::ordered_json& pod, const PodRow& row) const;
  // Null: a container's processes, or those of a cgroup in it, are not known.
  nlohmann::ordered_json processes_json(const PodRow& row) const;
  nlohmann::ordered_json container_json(const PodRow& row,
                                        const WorkloadIndex::ContainerRecord& container) const;

  const SummarySetup* setup_;
  const bool cpu_and_memory_;
  Published<NodeView>::ReadGuard node_;
  Published<CgroupTable>::ReadGuard cgroups_;
  std::optional<WorkloadIndex> index_;
  std::vector<NetworkRow> networks_;
  WallTime time_;
  std::size_t pod_ = 0;
  enum class Next : std::uint8_t { kNode, kPods, kNothing } next_ = Next::kNode;
};

}  // namespace headroom::report
