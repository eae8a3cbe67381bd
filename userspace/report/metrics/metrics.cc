// SPDX-License-Identifier: Apache-2.0
#include "report/metrics/metrics.h"

#include "report/metrics/exposition/scrape_body.h"
#include "report/metrics/metric_family.h"
#include "report/metrics/renamed_metrics.h"

#include <utility>

namespace headroom::report {

void add_reload_families(const ReloadStatus& status,
                         std::vector<prometheus::MetricFamily>& families) {
  MetricFamilyBuilder::gauge("headroom_config_last_reload_successful",
                             "1: the last reload of the configuration succeeded, or there was "
                             "none. 0: it failed, and the previous configuration is in force.")
      .add(status.successful() ? 1.0 : 0.0)
      .append_to(families);
}

namespace {

std::uint64_t unix_ns(WallTime time) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count());
}

ScrapeSetup with_cgroups(ScrapeSetup scrape, const MetricsSetup& setup) {
  scrape.cgroups = setup.views->cgroups.latest();
  scrape.names = setup.names.get();
  scrape.qos_of = setup.qos_of;
  scrape.host = setup.host.get();
  if (const auto node = setup.views->node.latest()) scrape.observations = node->observations;
  if (scrape.cgroups) scrape.read_at_ns = unix_ns(setup.wall_time(scrape.cgroups->at));
  return scrape;
}

}  // namespace

Families Metrics::own_families() const {
  Families families;
  if (const auto node = setup_.views->node.latest()) {
    add_node_families(*node, setup_.now(), families);
    if (node->status) add_status_families(*node->status, families);
    if (node->slices) add_slice_families(*node->slices, families);
    add_event_families(*node, families);
    if (setup_.container_names) {
      add_machine_families(*node, families);
      add_node_name(setup_.node_name, families);
    }
    add_wait_families(*node, families);
    if (const auto cgroups = setup_.views->cgroups.latest())
      add_wait_pair_families(*cgroups, families);
  }
  if (const auto forecasts = setup_.views->memory_forecasts.latest())
    add_forecast_families(*forecasts, families);
  add_process_families(families);
  if (setup_.extra_families) setup_.extra_families(families);
  if (setup_.old_names) add_old_names(families);
  std::erase_if(families, [this](const prometheus::MetricFamily& family) {
    return matches_any(family.name, setup_.exclude);
  });
  return families;
}

std::unique_ptr<ResponseBody> Metrics::all(Format format) const {
  ScrapeSetup scrape;
  scrape.format = format;
  scrape.own_families = own_families();
  scrape.cadvisor_families = setup_.container_names;
  if (setup_.old_names) scrape.aliases = old_cgroup_names();
  scrape.scope = setup_.scope;
  scrape.exclude = setup_.exclude;
  return std::make_unique<ScrapeBody>(with_cgroups(std::move(scrape), setup_));
}

std::unique_ptr<ResponseBody> Metrics::cadvisor(Format format) const {
  ScrapeSetup scrape;
  scrape.format = format;
  if (const auto node = setup_.views->node.latest())
    add_machine_families(*node, scrape.own_families);
  scrape.headroom_families = false;
  return std::make_unique<ScrapeBody>(with_cgroups(std::move(scrape), setup_));
}

std::unique_ptr<ResponseBody> Metrics::fleet(Format format) const {
  ScrapeSetup scrape;
  scrape.format = format;
  scrape.own_families = fleet_families(own_families());
  return std::make_unique<ScrapeBody>(std::move(scrape));
}

}  // namespace headroom::report
