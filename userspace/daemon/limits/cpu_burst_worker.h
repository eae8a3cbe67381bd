// SPDX-License-Identifier: Apache-2.0
// CpuBurstWorker: grants cpu.max.burst to pods that plan_burst() names, and withdraws it, on a
// thread of its own. While a pod is watched it reads /proc/stat five times a second: a grant ends
// within a second after the pod's CPUs are contended. The loop submits a request at a sweep and
// does not wait.
#pragma once

#include "act/original_values.h"
#include "base/thread/latest_request.h"
#include "base/thread/locked_value.h"
#include "daemon/limits/cpu_burst_request.h"
#include "judge/limits/burst_plan.h"
#include "observe/node/cpu_wait_source.h"
#include "report/view/node_view.h"

#include <headroom/cpuset.h>
#include <headroom/units.h>

#include <filesystem>
#include <map>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

namespace headroom::daemon {

class CpuBurstWorker {
 public:
  CpuBurstWorker(std::filesystem::path cgroup_root, const std::filesystem::path& proc,
                 const std::filesystem::path& state_dir);
  // Withdraws every grant.
  ~CpuBurstWorker();
  CpuBurstWorker(const CpuBurstWorker&) = delete;
  CpuBurstWorker& operator=(const CpuBurstWorker&) = delete;

  // Any thread. Without a budget in it, every grant is withdrawn and nothing else is done.
  void request(CpuBurstRequest request);
  report::CpuBurstCounts counts() const;

 private:
  struct Watched {
    CpuBurstRequest::Pod pod;
    judge_limits::BurstHistory history;
    std::vector<CpuBurstRequest::Quota> granted;  // to which it was granted
    std::vector<CpuSet> cpus;                     // of its quotas; empty: unknown
    Instant cpus_read_at{};
    Instant retry_at{};  // after a write that failed
  };

  void run(const std::stop_token& stop);
  void adopt(CpuBurstRequest request);
  void read_cpus();
  void check_pods(Instant at);
  std::optional<double> busy(Watched& watched, Instant at) const;
  double room() const;
  void grant(Watched& watched, double cpus, Instant at);
  void withdraw(Watched& watched);
  void publish();

  const std::filesystem::path root_;
  const act::CgroupOverridesFile file_;
  act::CgroupOverrides overrides_;
  observe::CpuTimeReader times_;
  CpuTimes last_times_;
  // Shares of the last period, by CPU; absent: offline, or unknown.
  std::vector<std::optional<double>> busy_;
  Instant read_at_{};
  judge_limits::BurstPolicy policy_{};
  std::map<CgroupId, Watched> pods_;
  report::CpuBurstCounts totals_;  // of the worker's thread
  LatestRequest<CpuBurstRequest> next_;
  LockedValue<report::CpuBurstCounts> published_;
  std::jthread thread_;  // destroyed first: it uses the members above
};

}  // namespace headroom::daemon
