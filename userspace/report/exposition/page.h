// SPDX-License-Identifier: Apache-2.0
// Page: a scrape's answer: the daemon's own families, then those of every cgroup, in bounded
// memory whatever the number of cgroups.
#pragma once

#include "report/exposition/body.h"
#include "report/exposition/cgroup_labels.h"
#include "report/exposition/format.h"
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
  bool ours = true;                         // headroom_cgroup_*
  std::uint64_t read_at_ns = HR_UNKNOWN;    // the table's instant, in wall time
};

class Page final : public PiecewiseBody {
 public:
  explicit Page(PageSetup setup);

 private:
  bool append_piece(std::string& out) override;
  void append_records(std::string& out);
  bool wanted(std::size_t family) const;
  void next_family();

  PageSetup setup_;
  std::optional<CgroupLabels> labels_;
  std::size_t own_ = 0;
  std::size_t family_ = 0;
  std::size_t record_ = 0;
  bool headed_ = false;  // the present family has had a sample, and so its header
  bool ended_ = false;
};

}  // namespace headroom::report
