// SPDX-License-Identifier: Apache-2.0
#include "report/view/waits_view.h"

#include <chrono>

namespace headroom::report {

NodeWaits node_waits(const Waits& waits) {
  NodeWaits node;
  if (waits.node_stalls) node.stalls = *waits.node_stalls;
  if (waits.node_throttles) node.throttles = *waits.node_throttles;
  return node;
}

std::optional<Duration> quantile(const hr_waits& waits, double share) {
  std::uint64_t all = 0;
  for (const hr_u32 count : waits.buckets)
    all += count;
  if (all == 0) return std::nullopt;
  const double wanted = share * static_cast<double>(all);
  std::uint64_t so_far = 0;
  std::size_t bucket = 0;
  for (; bucket + 1 < HR_WAIT_BUCKETS; ++bucket) {
    so_far += waits.buckets[bucket];
    if (static_cast<double>(so_far) >= wanted) break;
  }
  return std::chrono::microseconds(std::int64_t{1} << bucket);
}

void add(const hr_waits& waits, hr_waits& to) {
  to.ns += waits.ns;
  to.count += waits.count;
  for (std::size_t i = 0; i < HR_WAIT_BUCKETS; ++i)
    to.buckets[i] += waits.buckets[i];
}

void add(const hr_stalls& stalls, hr_stalls& to) {
  for (std::size_t cause = 0; cause < HR_STALL_CAUSES; ++cause)
    add(stalls.causes[cause], to.causes[cause]);
}

}  // namespace headroom::report
