// SPDX-License-Identifier: Apache-2.0
// Metrics: Prometheus families, built when scraped, on the scraper's thread; and whether the last
// reload of the configuration succeeded.
//
// Names and labels are cAdvisor's and the kubelet's where they have the quantity, headroom_*
// otherwise. An unknown value has no sample; a removed cgroup has no series. The few families of
// the node and of the daemon are built as prometheus-cpp's; those of cgroups are written row by
// row (exposition/scrape_body.h).
#pragma once

#include "judge/forecast/peak_forecast.h"
#include "report/eviction/audit_line.h"
#include "report/host/host_readers.h"
#include "report/http/response_body.h"
#include "report/metrics/exposition/exposition_text.h"
#include "report/metrics/exposition/scrape_body.h"
#include "report/view/node_view.h"
#include "report/view/published_views.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <prometheus/metric_family.h>

namespace headroom::report {

// ReloadStatus: whether the configuration files that were read last are in force.

// Set by the loop, read by scrapes: on any thread.
class ReloadStatus {
 public:
  void set_successful(bool successful) { successful_ = successful; }
  bool successful() const { return successful_; }

 private:
  std::atomic<bool> successful_ = true;  // the daemon does not start with a wrong configuration
};

// headroom_config_last_reload_successful.
void add_reload_families(const ReloadStatus& status,
                         std::vector<prometheus::MetricFamily>& families);

using Families = std::vector<prometheus::MetricFamily>;

// headroom_* and kubelet_*; `now` is for ages.
void add_node_families(const NodeView& node, Instant now, Families& families);
void add_status_families(const NodeStatus& status, Families& families);
void add_slice_families(const SlicesView& slices, Families& families);
void add_event_families(const NodeView& node, Families& families);
// Read on the calling thread: the daemon's CPU time by thread.
void add_process_families(Families& families);
// machine_* and kubelet_node_name, if no kubelet exports them.
void add_machine_families(const NodeView& node, Families& families);
void add_node_name(std::string_view node_name, Families& families);

// headroom_memory_forecast*.
void add_forecast_families(const PeakForecast::Records& records, Families& families);
// headroom_node_memory_stall_*, headroom_node_cpu_throttle_* and what the BPF programs measure.
void add_wait_families(const NodeView& node, Families& families);
// The ten longest waits of pods on each other, for CPUs and for memory.
void add_wait_pair_families(const CgroupTable& table, Families& families);

// Of these families the node-level series of a fleet: at most kMaxFleetSeries, with labels summed
// up.
inline constexpr std::size_t kMaxFleetSeries = 30;
Families fleet_families(const Families& all);

struct MetricsSetup {
  std::shared_ptr<PublishedViews> views = {};
  bool container_names = true;            // Config.compatibility_metrics
  bool old_names = true;                  // Config.metrics.old_names
  CgroupScope scope = CgroupScope::kAll;  // of /metrics
  std::vector<std::string> exclude = {};  // names of families, with * and ?
  std::function<Instant()> now = {};
  std::function<WallTime(Instant)> wall_time = wall_time_of;
  std::shared_ptr<ContainerNames> names = {};  // used on the scraper's thread; may be null
  QosOf qos_of = nullptr;
  std::shared_ptr<const HostReaders> host = {};  // null: HostFamilies have no series
  std::string node_name = {};
  // Families of other parts, collected on the scraper's thread; may be empty.
  std::function<void(Families&)> extra_families = {};
};

class Metrics {
 public:
  explicit Metrics(MetricsSetup setup) : setup_(std::move(setup)) {}

  // The node's and the daemon's families; none before the first publication.
  Families own_families() const;
  // /metrics: those families, and the families of cgroups and pods.
  std::unique_ptr<ResponseBody> all(Format format) const;
  // /metrics/cadvisor: container_* only, regardless of container_names.
  std::unique_ptr<ResponseBody> cadvisor(Format format) const;
  // /metrics/fleet: the few series by which a fleet is watched.
  std::unique_ptr<ResponseBody> fleet(Format format) const;

 private:
  MetricsSetup setup_;
};

}  // namespace headroom::report
