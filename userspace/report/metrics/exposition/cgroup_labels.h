// SPDX-License-Identifier: Apache-2.0
// CgroupLabels: the labels of every cgroup of a table, written once and used by every family.
#pragma once

#include "report/view/node_view.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace headroom::report {

// For pods without a manifest: the namespace and name that the runtime reports for one of their
// containers.
using RuntimePodNames = std::unordered_map<const PodRow*, std::pair<std::string, std::string>>;

class CgroupLabels {
 public:
  // `names` may be null: then only manifests and paths are used.
  explicit CgroupLabels(const CgroupTable& table, ContainerNames* names = nullptr);

  // cAdvisor's labels in Prometheus' order, escaped: container="web",id="/…",…; what is not known
  // is "", as cAdvisor has it. An empty result: the cgroup has no name and gets no series,
  // because two series with the same labels make a scrape invalid.
  std::string_view of(std::size_t record) const {
    const std::uint32_t begin = record == 0 ? 0 : ends_[record - 1];
    return std::string_view(text_).substr(begin, ends_[record] - begin);
  }

  // Inside a pod but no container of it: the pause container, a monitor, cgroups that a container
  // created. Pressure is not exported for those: measured on real nodes, these were two thirds of
  // its series.
  bool is_pod_internal(std::size_t record) const { return is_pod_internal_[record]; }

  // From the runtime if there is no manifest; views into this and the table.
  struct PodName {
    std::string_view pod_namespace, name;
  };
  PodName name_of(const PodRow& row) const;

 private:
  std::string text_;
  std::vector<bool> is_pod_internal_;
  RuntimePodNames runtime_pod_names_;
  std::vector<std::uint32_t> ends_;
};

}  // namespace headroom::report
