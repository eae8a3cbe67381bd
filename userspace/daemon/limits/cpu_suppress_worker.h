// SPDX-License-Identifier: Apache-2.0
// CpuSuppressWorker: keeps the requested cgroups suppressed (cpu.idle, or the least cpu.weight) and
// restores all others, on a thread of its own. The loop submits a request at a sweep and does not
// wait.
#pragma once

#include "act/original_values.h"
#include "base/thread/latest_request.h"
#include "base/thread/locked_value.h"
#include "daemon/limits/cpu_suppress_request.h"
#include "report/view/node_view.h"

#include <headroom/units.h>

#include <filesystem>
#include <map>
#include <set>
#include <stop_token>
#include <thread>

namespace headroom::daemon {

class CpuSuppressWorker {
 public:
  CpuSuppressWorker(std::filesystem::path cgroup_root, const std::filesystem::path& state_dir);
  // Restores every cgroup.
  ~CpuSuppressWorker();
  CpuSuppressWorker(const CpuSuppressWorker&) = delete;
  CpuSuppressWorker& operator=(const CpuSuppressWorker&) = delete;

  // Any thread. A cgroup that is not in it is restored.
  void request(CpuSuppressRequest request);
  report::CpuSuppressCounts counts() const;

 private:
  void run(const std::stop_token& stop);
  void reconcile(const CpuSuppressRequest& request, Instant at);
  void restore_others(const std::set<CgroupId>& wanted, Instant at);
  void suppress(const CpuSuppressRequest::Cgroup& cgroup, Instant at);
  void count_failure(CgroupId cgroup, Instant at);
  void publish();

  const act::CgroupOverridesFile file_;
  act::CgroupOverrides overrides_;
  std::map<CgroupId, Instant> refused_;  // by the kernel, or it has such a value of its own
  std::set<CgroupId> pods_;              // those that are suppressed
  report::CpuSuppressCounts totals_;     // of the worker's thread
  LatestRequest<CpuSuppressRequest> next_;
  LockedValue<report::CpuSuppressCounts> published_;
  std::jthread thread_;  // destroyed first: it uses the members above
};

}  // namespace headroom::daemon
