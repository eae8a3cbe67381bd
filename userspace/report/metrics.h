// SPDX-License-Identifier: Apache-2.0
// Metrics: what is shown, as Prometheus families, built when scraped, on the scraper's thread.
//
// cAdvisor's and the kubelet's names and labels where the quantity is theirs, headroom_* for what
// is ours. What is not known has no sample; what is gone has no series.
#pragma once

#include "report/node_view.h"
#include "report/reporter.h"

#include <functional>
#include <memory>
#include <vector>

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

namespace headroom::report {

using Families = std::vector<prometheus::MetricFamily>;

// headroom_* and kubelet_*; `now` is for ages.
void add_node_families(const NodeView& node, Instant now, Families& families);
void add_event_families(const NodeView& node, Families& families);
// container_*: one series per cgroup that the last sweep met.
void add_container_families(const CgroupTable& cgroups, Families& families);

struct MetricsSetup {
  std::shared_ptr<Shown> shown;
  bool container_names = true;  // Config.compatibility_metrics
  std::function<Instant()> now;
};

class Metrics final : public prometheus::Collectable {
 public:
  explicit Metrics(MetricsSetup setup) : setup_(std::move(setup)) {}
  // Never throws: what cannot be built is not scraped.
  Families Collect() const override;

 private:
  MetricsSetup setup_;
};

}  // namespace headroom::report
