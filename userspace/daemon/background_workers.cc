// SPDX-License-Identifier: Apache-2.0
#include "daemon/background_workers.h"

#include "base/log/journal.h"
#include "daemon/slices/slice_reconciler.h"
#include "judge/oom/oom_score.h"
#include "observe/node/capacity.h"

#include <string>
#include <utility>

namespace headroom::daemon {
namespace {

bool mirrors_oom_scores(const config::Config& config) {
  return config.mirror_oom_scores && config.policy.mode == Mode::kEnforce;
}

bool watches_pod_memory(const config::Config& config) {
  return config.pod_memory.any() && config.policy.mode == Mode::kEnforce;
}

bool grants_bursts(const config::Config& config) {
  return config.cpu_burst.budget && config.policy.mode == Mode::kEnforce;
}

bool suppresses_pods(const config::Config& config) {
  return config.cpu_suppress.is_on() && config.policy.mode == Mode::kEnforce;
}

bool limits_pod_swap(const config::Config& config) {
  return config.pod_swap.any() && config.policy.mode == Mode::kEnforce;
}

// Near a threshold there are sweeps every few milliseconds.
constexpr Duration kRequestPeriod = std::chrono::milliseconds(500);

bool is_due(Instant now, Instant& requested_at) {
  if (now - requested_at < kRequestPeriod) return false;
  requested_at = now;
  return true;
}

// Started if it is wanted, or if an earlier daemon left values that it restores. Once started it
// runs until the end; not wanted, it is asked for nothing and gives back what it changed.
template <class Worker, class File, class... Arguments>
void start_or_clear(std::unique_ptr<Worker>& worker, bool wanted, const File& left,
                    Arguments&&... arguments) {
  if (!worker && (wanted || left.exists()))
    worker = std::make_unique<Worker>(std::forward<Arguments>(arguments)...);
  if (worker && !wanted) worker->request({});
}

}  // namespace

Result<> BackgroundWorkers::reconfigure(const config::Config& config) {
  update_cpus(config);
  update_oom_scores(config);
  update_pod_memory(config);
  update_cpu_burst(config);
  update_cpu_suppress(config);
  update_pod_swap(config);
  return start_slices(config);
}

void BackgroundWorkers::set_declared_pods(observe::Manifests& manifests) {
  container_names_->set(std::move(manifests.containers));
  manifests_ = manifests.pods;
  if (cpus_) cpus_->set_declared_pods(manifests.pods);
}

// Once started, the worker runs until the end: the options of each update say whether it writes.
Result<> BackgroundWorkers::start_slices(const config::Config& config) {
  const SlicesMode mode = slices_mode(config);
  if (slices_ || mode == SlicesMode::kOff) return {};
  auto worker = SliceWorker::start(observe::SliceReader(root_.mount, root_.controllers),
                                   observe::possible_cpus(), mode);
  if (!worker) return tl::make_unexpected(worker.error());
  slices_ = std::move(*worker);
  return {};
}

void BackgroundWorkers::update_slices(const config::Config& config, const Amounts& capacity,
                                      const std::vector<std::shared_ptr<const Pod>>& active) {
  if (slices_) slices_->submit(slice_options(config, capacity, active));
}

// If it is switched off, the worker releases what it has assigned, then stays and does nothing:
// destroying it here would wait for its thread.
void BackgroundWorkers::update_cpus(const config::Config& config) {
  CpuManagerOptions options = cpu_manager_options_of(config);
  if (options.cpus.mode != config.cpus.mode)
    log::warning(
        "headroom.cpus.mode is enforce, but headroom.mode is observe: no cpuset is written");
  if (cpus_)
    cpus_->reconfigure(std::move(options));
  else if (options.cpus.mode != config::CpusConfig::Mode::kOff)
    cpus_ = std::make_unique<CpuWorker>(root_.mount, config.pods_cgroup, config.state_dir,
                                        std::move(options), manifests_, container_names_,
                                        cpus_view_, repack_queue_);
}

void BackgroundWorkers::update_oom_scores(const config::Config& config) {
  const bool wanted = mirrors_oom_scores(config);
  if (config.mirror_oom_scores && !wanted)
    log::warning(
        "headroom.oomScoreAdj is mirror, but headroom.mode is observe: no oom_score_adj is "
        "written");
  start_or_clear(oom_score_worker_, wanted, act::oom_score_file(config.state_dir), root_.mount,
                 config.state_dir);
}

void BackgroundWorkers::mirror_oom_scores(const config::Config& config, const Snapshot& snapshot,
                                          std::span<const Decision> ranking,
                                          const report::CgroupNames& names) {
  const auto& memory = of(snapshot.observations, Signal::kMemoryAvailable);
  if (!mirrors_oom_scores(config) || !memory || memory->capacity <= 0) return;
  std::vector<OomScoreRequest> requests;
  for (const auto& [pod, value] :
       judge_eviction::mirrored_oom_scores(snapshot, ranking, Bytes{memory->capacity}))
    if (const auto path = names.path_of(pod); !path.empty())
      requests.push_back({.pod = pod, .path = std::string(path), .value = value});
  oom_score_worker_->request(std::move(requests));
}

void BackgroundWorkers::update_pod_memory(const config::Config& config) {
  const bool wanted = watches_pod_memory(config);
  if (config.pod_memory.any() && !wanted)
    log::warning(
        "headroom.podLimits or headroom.coldMemory is set, but headroom.mode is observe: nothing "
        "is "
        "reclaimed or raised");
  start_or_clear(pod_memory_, wanted, act::memory_max_file(config.state_dir), root_.mount,
                 config.state_dir, limit_plans_);
  pod_memory_requested_at_ = {};
}

void BackgroundWorkers::watch_pod_memory(const config::Config& config, const Snapshot& snapshot,
                                         const Verdict& verdict, const report::CgroupNames& names) {
  if (!pod_memory_ || !snapshot.cgroups || !watches_pod_memory(config)) return;
  const bool due = snapshot.at - pod_memory_requested_at_ >= kRequestPeriod;
  if (!due && !snapshot.cgroups_changed) return;
  pod_memory_requested_at_ = snapshot.at;
  pod_memory_->request(pod_memory_request(config, snapshot, verdict, names));
}

void BackgroundWorkers::update_cpu_burst(const config::Config& config) {
  const bool wanted = grants_bursts(config);
  if (config.cpu_burst.budget && !wanted)
    log::warning("headroom.cpuBurst is set, but headroom.mode is observe: nothing is granted");
  start_or_clear(cpu_burst_, wanted, act::cpu_burst_file(config.state_dir), root_.mount, "/proc",
                 config.state_dir);
  burst_requested_at_ = {};
}

void BackgroundWorkers::watch_quotas(const config::Config& config, const Snapshot& snapshot,
                                     const report::CgroupNames& names) {
  if (!cpu_burst_ || !snapshot.cgroups || !grants_bursts(config)) return;
  if (!is_due(snapshot.at, burst_requested_at_)) return;
  cpu_burst_->request(burst_requests_.next(config.cpu_burst, snapshot, names));
}

void BackgroundWorkers::update_cpu_suppress(const config::Config& config) {
  const bool wanted = suppresses_pods(config);
  if (config.cpu_suppress.is_on() && !wanted)
    log::warning("headroom.cpuSuppress is set, but headroom.mode is observe: no pod is suppressed");
  start_or_clear(cpu_suppress_, wanted, act::cpu_suppress_file(config.state_dir), root_.mount,
                 config.state_dir);
  if (!wanted) suppress_requests_ = {};
  suppress_requested_at_ = {};
}

void BackgroundWorkers::suppress_pods(const config::Config& config, const Snapshot& snapshot,
                                      const report::CgroupNames& names) {
  if (!cpu_suppress_ || !snapshot.cgroups || !suppresses_pods(config)) return;
  if (!is_due(snapshot.at, suppress_requested_at_)) return;
  // A kubelet writes cpu.weight of the tiers every minute, which the kernel refuses for idle ones.
  const std::string tiers_in = config.kubelet_present ? "" : config.pods_cgroup;
  cpu_suppress_->request(suppress_requests_.next(config.cpu_suppress, snapshot, names, tiers_in));
}

void BackgroundWorkers::update_pod_swap(const config::Config& config) {
  const bool wanted = limits_pod_swap(config);
  if (config.pod_swap.any() && !wanted)
    log::warning("headroom.podSwap is set, but headroom.mode is observe: no pod's swap is limited");
  start_or_clear(pod_swap_, wanted, act::pod_swap_file(config.state_dir), root_.mount,
                 config.state_dir);
  pod_swap_requests_ = {};
  pod_swap_requested_at_ = {};
}

void BackgroundWorkers::limit_pod_swap(const config::Config& config, const Snapshot& snapshot,
                                       const report::CgroupNames& names) {
  if (!pod_swap_ || !snapshot.cgroups || !limits_pod_swap(config)) return;
  if (!is_due(snapshot.at, pod_swap_requested_at_)) return;
  pod_swap_->request(pod_swap_requests_.next(config.pod_swap, snapshot, names));
}

void BackgroundWorkers::report_to(report::NodeReporter& reporter) const {
  if (slices_) reporter.set_slices(slices_->current());
  if (pod_memory_) reporter.set_pod_memory(pod_memory_->counts());
  if (cpu_burst_) reporter.set_cpu_burst(cpu_burst_->counts());
  if (cpu_suppress_) reporter.set_cpu_suppress(cpu_suppress_->counts());
  if (pod_swap_) reporter.set_pod_swap(pod_swap_->counts());
  if (!oom_score_worker_) return;
  const act::OomScoreCounts counts = oom_score_worker_->counters();
  reporter.set_oom_scores(
      {.written = counts.written, .gone = counts.gone, .failed = counts.failed});
}

}  // namespace headroom::daemon
