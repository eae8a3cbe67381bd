// SPDX-License-Identifier: Apache-2.0
#include "daemon/limits/cpu_suppress_worker.h"

#include "base/clock.h"
#include "base/log/journal.h"
#include "base/process_stat.h"
#include "daemon/state/load_former.h"

#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>
#include <vector>

namespace headroom::daemon {
namespace {

constexpr Duration kRetry = std::chrono::seconds(60);

}  // namespace

CpuSuppressWorker::CpuSuppressWorker(std::filesystem::path cgroup_root,
                                     const std::filesystem::path& state_dir)
    : file_(act::cpu_suppress_file(state_dir)),
      overrides_(std::move(cgroup_root),
                 [this](const act::CgroupOverrides::Found& found) { return file_.save(found); }) {
  overrides_.restore_former(load_former(file_, "values of cpu.idle"));
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

CpuSuppressWorker::~CpuSuppressWorker() = default;

void CpuSuppressWorker::request(CpuSuppressRequest request) {
  next_.put(std::move(request));
}

report::CpuSuppressCounts CpuSuppressWorker::counts() const {
  return published_.get();
}

void CpuSuppressWorker::run(const std::stop_token& stop) {
  report::set_thread_name("suppress");
  while (!stop.stop_requested()) {
    const auto request = next_.take(stop);
    if (!request) break;
    log::log_exceptions("suppress pods", [&] { reconcile(*request, observe::now()); });
  }
  log::log_exceptions("restore cpu.idle", [this] { overrides_.restore_all(); });
}

void CpuSuppressWorker::reconcile(const CpuSuppressRequest& request, Instant at) {
  const std::size_t before = pods_.size();
  std::set<CgroupId> wanted;
  for (const CpuSuppressRequest::Cgroup& cgroup : request.cgroups)
    wanted.insert(cgroup.id);
  restore_others(wanted, at);
  for (const CpuSuppressRequest::Cgroup& cgroup : request.cgroups)
    suppress(cgroup, at);
  if ((before == 0) != pods_.empty())
    log::info("{}", pods_.empty() ? "no pod's CPU time is suppressed any more"
                                  : "pods' CPU time is suppressed (cpu.idle)");
  publish();
}

void CpuSuppressWorker::restore_others(const std::set<CgroupId>& wanted, Instant at) {
  std::vector<CgroupId> others;
  for (const auto& [cgroup, original] : overrides_.found())
    if (!wanted.contains(cgroup)) others.push_back(cgroup);
  for (const CgroupId cgroup : others) {
    if (overrides_.restore(cgroup) != 0)
      count_failure(cgroup, at);
    else if (pods_.erase(cgroup) > 0)
      ++totals_.released;
  }
  std::erase_if(refused_, [&](const auto& each) {
    return !wanted.contains(each.first) && !overrides_.found().contains(each.first);
  });
}

void CpuSuppressWorker::suppress(const CpuSuppressRequest::Cgroup& cgroup, Instant at) {
  if (overrides_.found().contains(cgroup.id)) return;
  if (const auto refused = refused_.find(cgroup.id);
      refused != refused_.end() && at - refused->second < kRetry)
    return;
  refused_.erase(cgroup.id);
  const int error = overrides_.suppress(cgroup.id, cgroup.path);
  if (error == 0) {
    if (cgroup.is_pod && pods_.insert(cgroup.id).second) ++totals_.suppressed;
    return;
  }
  if (error == EBUSY || error == ENOENT) {  // idle of its own, or removed
    refused_.emplace(cgroup.id, at);
    return;
  }
  log::warning("{}: write cpu.idle: {}; tried again in a minute", cgroup.path,
               std::generic_category().message(error));
  count_failure(cgroup.id, at);
}

// Each failure once, though it is tried again.
void CpuSuppressWorker::count_failure(CgroupId cgroup, Instant at) {
  if (refused_.emplace(cgroup, at).second) ++totals_.failed;
}

void CpuSuppressWorker::publish() {
  totals_.pods.assign(pods_.begin(), pods_.end());
  published_.set(totals_);
}

}  // namespace headroom::daemon
