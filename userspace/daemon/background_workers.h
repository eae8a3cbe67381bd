// SPDX-License-Identifier: Apache-2.0
// BackgroundWorkers: the threads that keep slices, CPU sets and OOM scores as configured, and what
// they share with the servers.
#pragma once

#include "config/config.h"
#include "daemon/cpus/cpu_worker.h"
#include "daemon/limits/cpu_burst_request.h"
#include "daemon/limits/cpu_burst_worker.h"
#include "daemon/limits/cpu_suppress_request.h"
#include "daemon/limits/cpu_suppress_worker.h"
#include "daemon/limits/limit_plan_queue.h"
#include "daemon/limits/pod_memory_worker.h"
#include "daemon/limits/pod_swap_request.h"
#include "daemon/limits/pod_swap_worker.h"
#include "daemon/slices/slice_worker.h"
#include "daemon/sources/runtime_container_names.h"
#include "daemon/state/oom_score_worker.h"
#include "manifest/manifest_reader.h"
#include "observe/cgroup/cgroup_source.h"
#include "report/reporter.h"
#include "report/view/cpus_view.h"

#include <headroom/result.h>

#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace headroom::daemon {

class BackgroundWorkers {
 public:
  explicit BackgroundWorkers(observe::CgroupRoot root) : root_(std::move(root)) {}

  // Starts the workers that the configuration asks for and are not running yet, and passes the
  // configuration to those that run. A worker that is switched off keeps its thread and does
  // nothing. An error concerns the slices; the other workers are started anyway.
  Result<> reconfigure(const config::Config& config);
  // Takes the containers' names and the pods from `manifests`; the rest is for the observer.
  void set_declared_pods(observe::Manifests& manifests);
  // The node's capacity or its active pods have changed.
  void update_slices(const config::Config& config, const Amounts& capacity,
                     const std::vector<std::shared_ptr<const Pod>>& active);
  // Ranks from the sweep's snapshot; does nothing unless oom_score_adj is mirrored.
  void mirror_oom_scores(const config::Config& config, const Snapshot& snapshot,
                         std::span<const Decision> ranking, const report::CgroupNames& names);

  // After a sweep; does nothing unless podLimits or coldMemory is configured.
  void watch_pod_memory(const config::Config& config, const Snapshot& snapshot,
                        const Verdict& verdict, const report::CgroupNames& names);

  // After a sweep; does nothing unless cpuBurst is configured.
  void watch_quotas(const config::Config& config, const Snapshot& snapshot,
                    const report::CgroupNames& names);

  // After a sweep; does nothing unless cpuSuppress is configured.
  void suppress_pods(const config::Config& config, const Snapshot& snapshot,
                     const report::CgroupNames& names);

  // After a sweep; does nothing unless podSwap is configured.
  void limit_pod_swap(const config::Config& config, const Snapshot& snapshot,
                      const report::CgroupNames& names);

  // Passes the workers' counters to the reporter.
  void report_to(report::NodeReporter& reporter) const;

  std::shared_ptr<LimitPlanQueue> limit_plans() const { return limit_plans_; }

  // For the servers' threads.
  std::shared_ptr<report::PublishedCpusView> cpus_view() const { return cpus_view_; }
  std::shared_ptr<RepackQueue> repack_queue() const { return repack_queue_; }
  std::shared_ptr<KubeletContainerNames> container_names() const { return container_names_; }

 private:
  Result<> start_slices(const config::Config& config);
  void update_cpus(const config::Config& config);
  void update_oom_scores(const config::Config& config);
  void update_pod_memory(const config::Config& config);
  void update_cpu_burst(const config::Config& config);
  void update_cpu_suppress(const config::Config& config);
  void update_pod_swap(const config::Config& config);

  const observe::CgroupRoot root_;
  const std::shared_ptr<KubeletContainerNames> container_names_ =
      std::make_shared<KubeletContainerNames>();
  const std::shared_ptr<report::PublishedCpusView> cpus_view_ =
      std::make_shared<report::PublishedCpusView>();
  const std::shared_ptr<RepackQueue> repack_queue_ = std::make_shared<RepackQueue>();
  const std::shared_ptr<LimitPlanQueue> limit_plans_ = std::make_shared<LimitPlanQueue>();
  std::vector<Pod> manifests_;                        // as last declared
  std::unique_ptr<SliceWorker> slices_;               // null: never switched on
  std::unique_ptr<CpuWorker> cpus_;                   // null: never switched on
  std::unique_ptr<OomScoreWorker> oom_score_worker_;  // null: never switched on
  std::unique_ptr<PodMemoryWorker> pod_memory_;       // null: never switched on
  Instant pod_memory_requested_at_{};
  std::unique_ptr<CpuBurstWorker> cpu_burst_;  // null: never switched on
  CpuBurstRequests burst_requests_;
  Instant burst_requested_at_{};
  std::unique_ptr<CpuSuppressWorker> cpu_suppress_;  // null: never switched on
  CpuSuppressRequests suppress_requests_;
  Instant suppress_requested_at_{};
  std::unique_ptr<PodSwapWorker> pod_swap_;  // null: never switched on
  PodSwapRequests pod_swap_requests_;
  Instant pod_swap_requested_at_{};
};

}  // namespace headroom::daemon
