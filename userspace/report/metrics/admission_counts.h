// SPDX-License-Identifier: Apache-2.0
// AdmissionCounts: pods that headroomctl run was refused, and pods that were stopped for one. Under
// the kubelet's names and labels. A kubelet that runs on the node counts its own.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <prometheus/metric_family.h>

namespace headroom::report {

class AdmissionCounts {
 public:
  // `reason`: of the pod's status. Any thread.
  void count_rejection(std::string_view reason);
  // `pods` were chosen because `resource` was short, the first one that was. Any thread.
  void count_preemptions(std::string_view resource, std::uint64_t pods);

  // Without rejections and preemptions there is no family, as with a kubelet.
  void append_to(std::vector<prometheus::MetricFamily>& families) const;

 private:
  using Counts = std::map<std::string, std::uint64_t, std::less<>>;

  mutable std::mutex mutex_;
  Counts rejections_;   // by reason
  Counts preemptions_;  // by resource
};

}  // namespace headroom::report
