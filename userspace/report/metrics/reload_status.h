// SPDX-License-Identifier: Apache-2.0
// ReloadStatus: whether the configuration files that were read last are in force.
#pragma once

#include <atomic>
#include <vector>

#include <prometheus/metric_family.h>

namespace headroom::report {

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

}  // namespace headroom::report
