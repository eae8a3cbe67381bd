// SPDX-License-Identifier: Apache-2.0
// Identity: which pod and container a cgroup belongs to, as far as its place and name tell.
#pragma once

#include "report/node_view.h"

#include <headroom/pod.h>

#include <cstdint>
#include <string_view>
#include <unordered_map>

namespace headroom::report {

// "app" of "/kubepods.slice/kubepods-pod1.slice/app.service": the last element, without its unit
// suffix.
std::string_view leaf(std::string_view path);

// The pod's container that the cgroup is named after; null when it is named otherwise.
const Container* container_named(const Pod& pod, std::string_view path);

// The container id that runtimes end their scopes with ("cri-containerd-<64 hex>.scope"), which
// cAdvisor puts into `name`; "" for any other name.
std::string_view runtime_id(std::string_view path);

// Finds the pod a cgroup lies in, however deep.
class PodIndex {
 public:
  explicit PodIndex(const CgroupTable& table);
  // Null: in no pod. The row is of the table given.
  const PodRow* pod_of(const hr_record& record) const;
  const hr_record* record_of(CgroupId id) const;

 private:
  std::unordered_map<std::uint64_t, const hr_record*> records_;
  std::unordered_map<std::uint64_t, const PodRow*> pods_;
};

}  // namespace headroom::report
