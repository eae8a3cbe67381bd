// SPDX-License-Identifier: Apache-2.0
#include "daemon/limits/cpu_burst_worker.h"

#include "base/clock.h"
#include "base/log/journal.h"
#include "base/process_stat.h"
#include "daemon/state/load_former.h"
#include "observe/pod/pod_cgroup_path.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

namespace headroom::daemon {
namespace {

using judge_limits::BurstStep;
using judge_limits::kBurstPeriod;

constexpr Duration kIdle = std::chrono::seconds(10);  // without a pod to watch
constexpr Duration kCpusetHold = std::chrono::seconds(5);
constexpr Duration kRetry = std::chrono::seconds(60);

// Absent: no time has passed on it, or it is offline.
std::optional<double> busy_share(const std::optional<CpuTime>& before,
                                 const std::optional<CpuTime>& now) {
  if (!before || !now || now->idle < before->idle) return std::nullopt;
  const auto sum = [](const CpuTime& time) { return time.idle + time.interrupts + time.tasks; };
  if (sum(*now) <= sum(*before)) return std::nullopt;
  const auto passed = static_cast<double>(sum(*now) - sum(*before));
  return 1 - static_cast<double>(now->idle - before->idle) / passed;
}

}  // namespace

CpuBurstWorker::CpuBurstWorker(std::filesystem::path cgroup_root, const std::filesystem::path& proc,
                               const std::filesystem::path& state_dir)
    : root_(std::move(cgroup_root)),
      file_(act::cpu_burst_file(state_dir)),
      overrides_(root_,
                 [this](const act::CgroupOverrides::Found& found) { return file_.save(found); }),
      times_(proc) {
  overrides_.restore_former(load_former(file_, "values of cpu.max.burst"));
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

CpuBurstWorker::~CpuBurstWorker() = default;

void CpuBurstWorker::request(CpuBurstRequest request) {
  next_.put(std::move(request));
}

report::CpuBurstCounts CpuBurstWorker::counts() const {
  return published_.get();
}

void CpuBurstWorker::run(const std::stop_token& stop) {
  report::set_thread_name("burst");
  while (!stop.stop_requested()) {
    const Duration wait =
        pods_.empty()
            ? kIdle
            : std::max<Duration>(read_at_ + kBurstPeriod - observe::now(), Duration::zero());
    auto next = next_.take_within(wait, stop);
    log::log_exceptions("watch the quotas of pods", [&] {
      if (next) adopt(std::move(*next));
      const Instant at = observe::now();
      if (!pods_.empty() && at - read_at_ >= kBurstPeriod) {
        read_at_ = at;
        read_cpus();
        check_pods(at);
      }
      publish();
    });
  }
  log::log_exceptions("restore cpu.max.burst", [this] { overrides_.restore_all(); });
}

void CpuBurstWorker::adopt(CpuBurstRequest request) {
  policy_ = request.policy;
  std::map<CgroupId, Watched> watched;
  for (CpuBurstRequest::Pod& pod : request.pods) {
    auto known = pods_.extract(pod.id);
    Watched& each =
        known.empty() ? watched[pod.id] : watched.insert(std::move(known)).position->second;
    // A request that no reading has used yet is not lost.
    pod.throttled = pod.throttled || each.pod.throttled;
    pod.bursting = pod.bursting || each.pod.bursting;
    if (!pod.used) pod.used = each.pod.used;
    if (pod.quotas != each.pod.quotas) each.cpus_read_at = {};
    each.pod = std::move(pod);
  }
  for (auto& [id, former] : pods_)
    withdraw(former);
  pods_ = std::move(watched);
}

void CpuBurstWorker::read_cpus() {
  CpuTimes now = times_.read();
  busy_.assign(now.size(), std::nullopt);
  for (std::size_t i = 0; i < std::min(now.size(), last_times_.size()); ++i)
    busy_[i] = busy_share(last_times_[i], now[i]);
  last_times_ = std::move(now);
}

// Of its cgroups with a quota, the one whose CPUs are the busiest.
std::optional<double> CpuBurstWorker::busy(Watched& watched, Instant at) const {
  if (at - watched.cpus_read_at >= kCpusetHold) {
    watched.cpus_read_at = at;
    watched.cpus.clear();
    for (const CpuBurstRequest::Quota& quota : watched.pod.quotas)
      if (const auto cpus = observe::cpus_of_cgroup(root_, quota.path))
        watched.cpus.push_back(*cpus);
  }
  std::optional<double> most;
  for (const CpuSet& cpus : watched.cpus) {
    double sum = 0;
    int count = 0;
    for (std::size_t i = 0; i < busy_.size(); ++i)
      if (busy_[i] && cpus.contains(static_cast<Cpu>(i))) sum += *busy_[i], ++count;
    if (count > 0) most = std::max(most.value_or(0), sum / count);
  }
  return most;
}

double CpuBurstWorker::room() const {
  const auto cpus = std::count_if(busy_.begin(), busy_.end(),
                                  [](const auto& share) { return share.has_value(); });
  double left = static_cast<double>(policy_.budget.value_or(0)) * static_cast<double>(cpus);
  for (const auto& [id, watched] : pods_)
    left -= watched.history.granted;
  return left;
}

void CpuBurstWorker::check_pods(Instant at) {
  for (auto& [id, watched] : pods_) {
    CpuBurstRequest::Pod& pod = watched.pod;
    const judge_limits::BurstReading reading{.at = at,
                                             .busy = busy(watched, at),
                                             .throttled = std::exchange(pod.throttled, false),
                                             .bursting = std::exchange(pod.bursting, false),
                                             .quota = pod.quota,
                                             .used = std::exchange(pod.used, std::nullopt)};
    const auto plan = plan_burst(policy_, reading, room(), watched.history);
    // Another quota, or another container: what was granted does not fit it.
    const bool outdated = !watched.granted.empty() && watched.granted != pod.quotas;
    if (plan.step == BurstStep::kWithdraw || outdated) withdraw(watched);
    if (plan.step == BurstStep::kGrant && at >= watched.retry_at) grant(watched, plan.cpus, at);
  }
}

void CpuBurstWorker::grant(Watched& watched, double cpus, Instant at) {
  const double part = cpus / watched.pod.quota;
  int failed = 0;
  for (const CpuBurstRequest::Quota& quota : watched.pod.quotas) {
    const auto burst = static_cast<std::uint64_t>(part * static_cast<double>(quota.quota_us));
    // A burst that the cgroup has of its own stays.
    const int error = overrides_.set_burst(quota.id, quota.path, burst);
    if (error != 0 && error != EBUSY) failed = error;
  }
  watched.granted = watched.pod.quotas;
  watched.history.granted = cpus;
  if (failed == 0) {
    ++totals_.granted;
    return;
  }
  log::warning("{}: write cpu.max.burst: {}; tried again in a minute",
               watched.pod.quotas.front().path, std::generic_category().message(failed));
  ++totals_.failed;
  watched.retry_at = at + kRetry;
  withdraw(watched);
}

void CpuBurstWorker::withdraw(Watched& watched) {
  if (watched.granted.empty()) return;
  for (const CpuBurstRequest::Quota& quota : watched.granted)
    if (overrides_.restore(quota.id) != 0) ++totals_.failed;
  ++totals_.withdrawn;
  watched.granted.clear();
  watched.history.granted = 0;
}

void CpuBurstWorker::publish() {
  totals_.grants.clear();
  for (const auto& [id, watched] : pods_)
    if (watched.history.granted > 0)
      totals_.grants.push_back({.pod = id, .cpus = watched.history.granted});
  published_.set(totals_);
}

}  // namespace headroom::daemon
