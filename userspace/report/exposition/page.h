// SPDX-License-Identifier: Apache-2.0
// Page: a scrape's answer: the daemon's own families, then those of every cgroup and every pod, in
// bounded memory whatever their number.
#pragma once

#include "report/exposition/body.h"
#include "report/exposition/cgroup_labels.h"
#include "report/exposition/cgroup_waits.h"
#include "report/exposition/format.h"
#include "report/identity.h"
#include "report/node_view.h"
#include "report/published.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <prometheus/metric_family.h>

namespace headroom::report {

struct PageSetup {
  Format format = Format::kText;
  std::vector<prometheus::MetricFamily> own;
  Published<CgroupTable>::Reading cgroups;  // may be empty: none shown yet
  bool cadvisors = true;                    // container_*
  bool ours = true;                         // headroom_cgroup_*, headroom_pod_*
  std::uint64_t read_at_ns = HR_UNKNOWN;    // the table's instant, in wall time
  ContainerNames* names = nullptr;
  QosOf qos_of = nullptr;
};

class Page final : public PiecewiseBody {
 public:
  explicit Page(PageSetup setup);

 private:
  bool append_piece(std::string& out) override;
  bool append_own(std::string& out);
  bool append_cgroups(std::string& out);
  bool append_pods(std::string& out);
  void append_records(std::string& out);
  bool wanted(std::size_t family) const;

  PageSetup setup_;
  std::optional<CgroupLabels> labels_;
  std::optional<PodIndex> index_;
  std::optional<CgroupWaits> waits_;
  std::size_t own_ = 0;
  std::size_t cgroup_family_ = 0;
  std::size_t record_ = 0;
  bool headed_ = false;  // the present family has had a sample, and so its header
  std::size_t pod_family_ = 0;
  bool ended_ = false;
};

}  // namespace headroom::report
