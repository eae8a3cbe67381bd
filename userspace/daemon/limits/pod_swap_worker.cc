// SPDX-License-Identifier: Apache-2.0
#include "daemon/limits/pod_swap_worker.h"

#include "base/clock.h"
#include "base/file_io.h"
#include "base/log/journal.h"
#include "base/process_stat.h"
#include "daemon/state/load_former.h"
#include "observe/cgroup/stat_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

namespace headroom::daemon {
namespace {

using act::OverriddenFile;

constexpr Duration kRetry = std::chrono::seconds(60);
// systemd writes memory.zswap.writeback when it applies a unit's settings again (since 256).
constexpr Duration kVerifyPeriod = std::chrono::seconds(60);

// How often tasks were slowed down at memory.swap.high; absent: the cgroup was removed.
std::optional<std::uint64_t> swap_throttles(const std::string& cgroup) {
  const Fd file(::open((cgroup + "/memory.swap.events").c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 128> text{};
  const ssize_t n = file ? ::read(file.get(), text.data(), text.size()) : -1;
  if (n <= 0) return std::nullopt;
  for (observe::FlatKeyed line({text.data(), static_cast<std::size_t>(n)}); line.next();)
    if (line.key() == "high") return line.value();
  return std::nullopt;
}

}  // namespace

PodSwapWorker::PodSwapWorker(std::filesystem::path cgroup_root,
                             const std::filesystem::path& state_dir)
    : root_(cgroup_root.native()),
      file_(act::pod_swap_file(state_dir)),
      overrides_(std::move(cgroup_root),
                 [this](const act::CgroupOverrides::Found& found) { return file_.save(found); }) {
  overrides_.restore_former(load_former(file_, "values of memory.swap.high"));
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

PodSwapWorker::~PodSwapWorker() = default;

void PodSwapWorker::request(PodSwapRequest request) {
  next_.put(std::move(request));
}

report::PodSwapCounts PodSwapWorker::counts() const {
  return published_.get();
}

void PodSwapWorker::run(const std::stop_token& stop) {
  report::set_thread_name("swap");
  while (!stop.stop_requested()) {
    const auto request = next_.take(stop);
    if (!request) break;
    log::log_exceptions("limit the swap of pods", [&] { reconcile(*request, observe::now()); });
  }
  log::log_exceptions("restore memory.swap.high", [this] { overrides_.restore_all(); });
}

void PodSwapWorker::reconcile(const PodSwapRequest& request, Instant at) {
  restore_others(request, at);
  if (at - verified_at_ >= kVerifyPeriod) {
    verified_at_ = at;
    overrides_.forget_changed();
  }
  override_new(request, at);
  count_throttles(request);
  publish(request);
}

void PodSwapWorker::restore_others(const PodSwapRequest& request, Instant at) {
  std::set<CgroupId> wanted, kept;
  for (const PodSwapRequest::Cgroup& cgroup : request.cgroups) {
    wanted.insert(cgroup.id);
    const auto now = overrides_.found().find(cgroup.id);
    if (now != overrides_.found().end() && now->second.setting == cgroup.file &&
        now->second.set == cgroup.value)
      kept.insert(cgroup.id);
  }
  const std::size_t before = overrides_.found().size();
  for (const CgroupId cgroup : overrides_.restore_others(kept))
    count_failure(cgroup, at);
  totals_.restored += before - overrides_.found().size();
  std::erase_if(refused_, [&](const auto& each) {
    return !wanted.contains(each.first) && !overrides_.found().contains(each.first);
  });
  std::erase_if(throttles_, [&](const auto& each) { return !kept.contains(each.first); });
}

void PodSwapWorker::override_new(const PodSwapRequest& request, Instant at) {
  std::vector<act::CgroupOverrides::Wanted> values;
  std::vector<const PodSwapRequest::Cgroup*> cgroups;
  for (const PodSwapRequest::Cgroup& cgroup : request.cgroups) {
    const auto refused = refused_.find(cgroup.id);
    const bool waits = refused != refused_.end() && at - refused->second < kRetry;
    if (waits || overrides_.found().contains(cgroup.id)) continue;
    refused_.erase(cgroup.id);
    const bool is_below_pod = cgroup.id != cgroup.pod;
    values.push_back({.cgroup = cgroup.id,
                      .path = cgroup.path,
                      .file = cgroup.file,
                      .value = cgroup.value,
                      .inherited = is_below_pod && overrides_.found().contains(cgroup.pod)});
    cgroups.push_back(&cgroup);
  }
  if (values.empty()) return;
  const std::vector<int> errors = overrides_.set_all(values);
  for (std::size_t i = 0; i < errors.size(); ++i)
    note_result(*cgroups[i], errors[i], at);
}

void PodSwapWorker::note_result(const PodSwapRequest::Cgroup& cgroup, int error, Instant at) {
  if (error == 0) {
    ++totals_.set;
    if (cgroup.file != OverriddenFile::kSwapHigh) return;
    // Unknown is not none: what came before the limit would be counted.
    if (const auto now = swap_throttles(root_ + cgroup.path)) throttles_[cgroup.id] = *now;
    return;
  }
  const char* const file = act::file_of(cgroup.file);
  if (error == EBUSY || error == ENOENT) {  // such a value of its own, or removed
    refused_.emplace(cgroup.id, at);
    // Below a pod the memory controller may be off, and every file of it missing.
    const bool is_missing = error == ENOENT && cgroup.id == cgroup.pod &&
                            ::access((root_ + cgroup.path).c_str(), F_OK) == 0;
    if (!is_missing || reported_missing_) return;
    reported_missing_ = true;
    log::warning("{}: the kernel has no {}: headroom.podSwap does not use it", cgroup.path, file);
    return;
  }
  log::warning("{}: write {}: {}; tried again in a minute", cgroup.path, file,
               std::generic_category().message(error));
  count_failure(cgroup.id, at);
}

// Each failure once, though it is tried again.
void PodSwapWorker::count_failure(CgroupId cgroup, Instant at) {
  if (refused_.emplace(cgroup, at).second) ++totals_.failed;
}

void PodSwapWorker::count_throttles(const PodSwapRequest& request) {
  for (const PodSwapRequest::Cgroup& cgroup : request.cgroups) {
    const auto last = throttles_.find(cgroup.id);
    if (!cgroup.is_slowed || last == throttles_.end()) continue;
    const auto now = swap_throttles(root_ + cgroup.path);
    if (!now || *now < last->second) continue;
    totals_.throttles += *now - last->second;
    last->second = *now;
  }
}

void PodSwapWorker::publish(const PodSwapRequest& request) {
  totals_.limited = totals_.kept_in_zswap = 0;
  for (const PodSwapRequest::Cgroup& cgroup : request.cgroups) {
    if (cgroup.id != cgroup.pod || !overrides_.found().contains(cgroup.id)) continue;
    ++(cgroup.file == OverriddenFile::kSwapHigh ? totals_.limited : totals_.kept_in_zswap);
  }
  published_.set(totals_);
}

}  // namespace headroom::daemon
