// SPDX-License-Identifier: Apache-2.0
// PodIndex: the pod and container that a cgroup belongs to, found by its position and name.
#pragma once

#include "report/view/node_view.h"

#include <headroom/id_table.h>
#include <headroom/pod.h>

#include <string_view>

namespace headroom::report {

// "app" of "/kubepods.slice/kubepods-pod1.slice/app.service": the last element, without its unit
// suffix.
std::string_view unit_stem(std::string_view path);

// The container of the pod that the cgroup is named after; null: none.
const Container* container_named(const Pod& pod, std::string_view path);

// The container id that runtimes end their scopes with ("cri-containerd-<64 hex>.scope"), which
// cAdvisor puts into `name`; "" for any other name.
std::string_view runtime_id(std::string_view path);

// Finds the pod of a cgroup at any depth below it. The table must not move.
class PodIndex {
 public:
  explicit PodIndex(const CgroupTable& table);
  // Null: in no pod. Points into the given table.
  const PodRow* pod_of(const hr_record& record) const;
  const hr_record* record_of(CgroupId id) const;

 private:
  const CgroupTable* table_;
  IdTable records_, pods_;
};

}  // namespace headroom::report
