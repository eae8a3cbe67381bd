// SPDX-License-Identifier: Apache-2.0
#include "report/metrics.h"

#include "report/journal.h"

#include <exception>

namespace headroom::report {

Families Metrics::Collect() const {
  Families families;
  try {
    if (const auto node = setup_.shown->node.latest()) {
      add_node_families(*node, setup_.now(), families);
      add_event_families(*node, families);
    }
    if (!setup_.container_names) return families;
    if (const auto cgroups = setup_.shown->cgroups.latest())
      add_container_families(*cgroups, families);
  } catch (const std::exception& e) {
    log::error("build the metrics: {}", e.what());
    families.clear();
  }
  return families;
}

}  // namespace headroom::report
