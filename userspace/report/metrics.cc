// SPDX-License-Identifier: Apache-2.0
#include "report/metrics.h"

#include "report/exposition/page.h"

#include <utility>

namespace headroom::report {
namespace {

std::uint64_t unix_ns(WallTime time) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count());
}

PageSetup with_cgroups(PageSetup page, const MetricsSetup& setup) {
  page.cgroups = setup.shown->cgroups.latest();
  page.names = setup.names.get();
  page.qos_of = setup.qos_of;
  if (page.cgroups) page.read_at_ns = unix_ns(setup.wall_time(page.cgroups->at));
  return page;
}

}  // namespace

Families Metrics::own() const {
  Families families;
  if (const auto node = setup_.shown->node.latest()) {
    add_node_families(*node, setup_.now(), families);
    if (node->status) add_status_families(*node->status, families);
    if (node->slices) add_slice_families(*node->slices, families);
    add_event_families(*node, families);
    if (setup_.container_names) add_machine_families(*node, setup_.node_name, families);
    add_wait_families(*node, families);
  }
  add_process_families(families);
  if (setup_.more) setup_.more(families);
  return families;
}

std::unique_ptr<Body> Metrics::all(Format format) const {
  PageSetup page;
  page.format = format;
  page.own = own();
  page.cadvisors = setup_.container_names;
  return std::make_unique<Page>(with_cgroups(std::move(page), setup_));
}

std::unique_ptr<Body> Metrics::cadvisor(Format format) const {
  PageSetup page;
  page.format = format;
  page.ours = false;
  return std::make_unique<Page>(with_cgroups(std::move(page), setup_));
}

}  // namespace headroom::report
