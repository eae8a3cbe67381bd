// SPDX-License-Identifier: Apache-2.0
// CgroupLabels: the labels of every cgroup and pod of a table.
#pragma once

#include "report/view/node_view.h"
#include "report/view/pod_index.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::report {

// Which cgroups have series. Each has the node's own: the root, the cgroups directly below it, and
// those that hold pods.
enum class CgroupScope : std::uint8_t {
  kPods,
  kContainers,  // pods and their containers
  kAll,
};

// Label sets of numbered things, ready to be written, in one string.
class LabelTexts {
 public:
  void reserve(std::size_t count, std::size_t bytes);
  // Adds the next one; may be empty. write(std::string&) appends it.
  template <typename Write>
  void add(Write write) {
    write(text_);
    ends_.push_back(static_cast<std::uint32_t>(text_.size()));
  }
  std::string_view operator[](std::size_t number) const {
    const std::uint32_t begin = number == 0 ? 0 : ends_[number - 1];
    return std::string_view(text_).substr(begin, ends_[number] - begin);
  }

 private:
  std::string text_;
  std::vector<std::uint32_t> ends_;
};

// CgroupLabels: the labels of every cgroup and pod of a table, escaped, written once and used by
// every family.
class CgroupLabels {
 public:
  // `index` is of the table. `names` may be null: then only manifests and paths are used.
  CgroupLabels(const CgroupTable& table, const PodIndex& index, ContainerNames* names = nullptr);

  // cAdvisor's labels in Prometheus' order: container="web",id="/…",…; an unknown value is "", as
  // in cAdvisor. An empty result: the cgroup has no name and gets no series, because two series
  // with the same labels make a scrape invalid.
  std::string_view of(std::size_t record) const { return cgroups_[record]; }
  // namespace, pod and uid of a row of CgroupTable::pods. The uid, because a terminating pod and
  // its successor may have the same name.
  std::string_view of_pod(std::size_t pod) const { return pods_[pod]; }
  // id of the root, of the cgroups directly below it, and of those above pods; empty for others.
  std::string_view of_node(std::size_t record) const { return node_[record]; }

  // Whether the cgroup is inside a pod but is not one of its containers: the pause container, a
  // monitor, a cgroup that a container created. Pressure is not exported for these: measured on
  // real nodes, they were two thirds of the pressure series.
  bool is_pod_internal(std::size_t record) const { return is_pod_internal_[record]; }

  bool is_in(CgroupScope scope, std::size_t record) const;

 private:
  LabelTexts cgroups_, pods_, node_;
  std::vector<bool> is_pod_internal_;
  std::vector<CgroupScope> smallest_scope_;  // of those that the cgroup is in
};

}  // namespace headroom::report
