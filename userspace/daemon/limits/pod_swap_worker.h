// SPDX-License-Identifier: Apache-2.0
// PodSwapWorker: keeps memory.swap.high and memory.zswap.writeback of the requested cgroups and
// restores all others, on a thread of its own. The loop submits a request at a sweep and does not
// wait.
#pragma once

#include "act/original_values.h"
#include "base/thread/latest_request.h"
#include "base/thread/locked_value.h"
#include "daemon/limits/pod_swap_request.h"
#include "report/view/node_view.h"

#include <headroom/units.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <stop_token>
#include <string>
#include <thread>

namespace headroom::daemon {

class PodSwapWorker {
 public:
  PodSwapWorker(std::filesystem::path cgroup_root, const std::filesystem::path& state_dir);
  // Restores every cgroup.
  ~PodSwapWorker();
  PodSwapWorker(const PodSwapWorker&) = delete;
  PodSwapWorker& operator=(const PodSwapWorker&) = delete;

  // Any thread. A cgroup that is not in it is restored.
  void request(PodSwapRequest request);
  report::PodSwapCounts counts() const;

 private:
  void run(const std::stop_token& stop);
  void reconcile(const PodSwapRequest& request, Instant at);
  void restore_others(const PodSwapRequest& request, Instant at);
  void override_new(const PodSwapRequest& request, Instant at);
  void note_result(const PodSwapRequest::Cgroup& cgroup, int error, Instant at);
  void count_failure(CgroupId cgroup, Instant at);
  void count_throttles(const PodSwapRequest& request);
  void publish(const PodSwapRequest& request);

  const std::string root_;
  const act::CgroupOverridesFile file_;
  act::CgroupOverrides overrides_;
  Instant verified_at_{};                        // that no other program has changed the values
  std::map<CgroupId, Instant> refused_;          // by the kernel, or it has such a value of its own
  std::map<CgroupId, std::uint64_t> throttles_;  // "high" of memory.swap.events when last read
  bool reported_missing_ = false;
  report::PodSwapCounts totals_;  // of the worker's thread
  LatestRequest<PodSwapRequest> next_;
  LockedValue<report::PodSwapCounts> published_;
  std::jthread thread_;  // destroyed first: it uses the members above
};

}  // namespace headroom::daemon
