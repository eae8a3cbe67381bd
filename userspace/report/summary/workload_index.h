// SPDX-License-Identifier: Apache-2.0
// WorkloadIndex: a table's pods with the records of their own cgroups and of their containers.
#pragma once

#include "report/view/node_view.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace headroom::report {

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

 private:
  std::string name_of(const PodRow& pod, std::string_view path) const;

  const CgroupTable* table_;
  ContainerNames* names_;
  std::unordered_map<std::uint64_t, std::size_t> by_id_;
  std::vector<std::pair<std::uint64_t, std::size_t>> by_parent_;  // sorted
  std::optional<std::size_t> root_;
};

}  // namespace headroom::report
