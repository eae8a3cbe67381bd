// SPDX-License-Identifier: Apache-2.0
// CgroupFamily: one quantity of every cgroup as a Prometheus family. To export a new field of
// hr_record, add a row to the table in the .cc, and to headroom-metrics(7).
//
// container_* families have cAdvisor's names, labels and units where cAdvisor has the quantity;
// headroom_cgroup_* families are headroom's own.
#pragma once

#include "report/view/node_view.h"

#include <headroom/bpf/abi.h>
#include <headroom/bpf/stall_abi.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <prometheus/metric_type.h>

namespace headroom::report {

// CgroupWaits: the waits of each record of a table. Few cgroups have waits; they are looked up by
// id once.

class CgroupWaits {
 public:
  explicit CgroupWaits(const CgroupTable& table);

  // Null: no waits, or not watched.
  const hr_stalls* stalls(std::size_t record) const { return stalls_[record]; }
  const hr_waits* throttles(std::size_t record) const { return throttles_[record]; }

 private:
  std::vector<const hr_stalls*> stalls_;
  std::vector<const hr_waits*> throttles_;
};

// The input of CgroupFamily::read: one cgroup.
struct CgroupMetricInput {
  const hr_record& record;
  std::uint64_t started_ns = HR_UNKNOWN;  // wall time
  std::uint64_t read_at_ns = HR_UNKNOWN;
  const hr_stalls* stalls = nullptr;    // null: no waits for memory, or not watched
  const hr_waits* throttles = nullptr;  // null: no waits for CPU quota, or not watched
};

// Which cgroups have a family, and with which labels.
enum class FamilyOf : std::uint8_t {
  kCgroups,  // all in the scope of the scrape, with cAdvisor's labels
  kPods,     // pods' own cgroups: namespace, pod, uid
  kNode,     // the root, the cgroups directly below it, and those that hold pods: id
};

// Adjacent rows with one name are one family: they differ in `extra_labels`.
struct CgroupFamily {
  std::string_view name;
  std::string_view help;
  prometheus::MetricType type;
  hr_u32 groups;   // all of these must be valid
  double divisor;  // units of the record per unit of the metric
  std::uint64_t (*read)(const CgroupMetricInput&);
  std::string_view extra_labels = "";  // in addition to the cgroup's, ready to be written
  FamilyOf of = FamilyOf::kCgroups;

  bool is_cadvisor_metric() const { return name.starts_with("container_"); }
  // Absent if unknown. No limit is 0 under cAdvisor's names, +Inf under headroom's.
  std::optional<double> value(const CgroupMetricInput& row) const;
};

std::span<const CgroupFamily> cgroup_families();

}  // namespace headroom::report
