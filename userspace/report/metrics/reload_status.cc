// SPDX-License-Identifier: Apache-2.0
#include "report/metrics/reload_status.h"

#include "report/metrics/metric_family.h"

namespace headroom::report {

void add_reload_families(const ReloadStatus& status,
                         std::vector<prometheus::MetricFamily>& families) {
  MetricFamilyBuilder::gauge("headroom_config_last_reload_successful",
                             "1: the last reload of the configuration succeeded, or there was "
                             "none. 0: it failed, and the previous configuration is in force.")
      .add(status.successful() ? 1.0 : 0.0)
      .append_to(families);
}

}  // namespace headroom::report
