// SPDX-License-Identifier: Apache-2.0
// Summary: /stats/summary, the kubelet's Summary API (v1alpha1), written pod by pod.
#pragma once

#include "report/eviction/audit_line.h"
#include "report/http/response_body.h"
#include "report/summary/workload_index.h"
#include "report/view/published_views.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace headroom::report {

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
  std::shared_ptr<ContainerNames> names = {};  // asked on the scraper's thread; may be null
  std::function<WallTime(Instant)> wall_time = wall_time_of;
};

class SummaryBody final : public ChunkedBody {
 public:
  // `cpu_and_memory`: only CPU and memory, for ?only_cpu_and_memory=true.
  SummaryBody(const SummarySetup& setup, bool cpu_and_memory);

 private:
  bool append_chunk(std::string& out) override;
  std::string node_text() const;
  std::string pod_text(const PodRow& row) const;

  const SummarySetup* setup_;
  const bool cpu_and_memory_;
  Published<NodeView>::ReadGuard node_;
  Published<CgroupTable>::ReadGuard cgroups_;
  std::optional<WorkloadIndex> index_;
  WallTime time_;
  std::size_t pod_ = 0;
  enum class Next : std::uint8_t { kNode, kPods, kNothing } next_ = Next::kNode;
};

}  // namespace headroom::report
