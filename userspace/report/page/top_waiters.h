// SPDX-License-Identifier: Apache-2.0
// TopWaiters: for each cause, the pod that waited most since the previous table. Used by one
// thread.
#pragma once

#include "report/view/pod_waits.h"
#include "report/view/waits_view.h"

#include <headroom/abi.h>

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include <nlohmann/json_fwd.hpp>

namespace headroom::report {

class TopWaiters {
 public:
  // The same table again changes nothing; waits of a new pod count from the previous table on.
  void update(const IndexedCgroupTable& cgroups);

  // {"throttled": {"namespace": …, "name": …, "ns_per_s": …}, …}; causes without waits are left
  // out.
  nlohmann::ordered_json json() const;

 private:
  // The causes of stalls, and the CPU quota last.
  static constexpr std::size_t kWaitCauses = HR_STALL_CAUSES + 1;
  using Totals = std::array<std::uint64_t, kWaitCauses>;
  struct TopWaiter {
    std::shared_ptr<const Pod> pod;
    double ns_per_s = 0;
  };

  void compare(const PodRow& row, const Totals& now, Instant at);

  Instant at_{};
  std::unordered_map<std::uint64_t, Totals> before_;  // by the pod's cgroup, of pods that waited
  std::array<TopWaiter, kWaitCauses> top_;
};

}  // namespace headroom::report
