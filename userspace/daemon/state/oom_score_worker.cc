// SPDX-License-Identifier: Apache-2.0
#include "daemon/state/oom_score_worker.h"

#include "base/log/journal.h"
#include "base/thread_cpu_time.h"

#include <algorithm>
#include <utility>

namespace headroom::daemon {

OomScoreWorker::OomScoreWorker(std::filesystem::path cgroup_root,
                               const std::filesystem::path& state_dir)
    : scores_(std::move(cgroup_root), [this] { pause(); }), file_(state_dir) {
  resume();
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

OomScoreWorker::~OomScoreWorker() = default;

void OomScoreWorker::resume() {
  if (auto found = file_.load())
    scores_.resume(std::move(*found));
  else
    log::error("{}: oom_score_adj is put back to what it is now", found.error().what);
}

void OomScoreWorker::request(std::vector<OomScoreRequest> requests) {
  {
    const std::lock_guard lock(mutex_);
    next_ = std::move(requests);
  }
  news_.notify_one();
}

void OomScoreWorker::run(const std::stop_token& stop) {
  report::set_thread_name("oom");
  while (!stop.stop_requested()) {
    std::unique_lock lock(mutex_);
    if (!news_.wait(lock, stop, [this] { return next_.has_value(); })) break;
    const std::vector<OomScoreRequest> requests = std::move(*std::exchange(next_, std::nullopt));
    lock.unlock();
    write_requested(requests, stop);
  }
  scores_.restore_all();
  save();
}

void OomScoreWorker::write_requested(const std::vector<OomScoreRequest>& requests,
                                     const std::stop_token& stop) {
  restore_unrequested(requests);
  std::vector<CgroupId> prepared;
  for (const OomScoreRequest& request : requests) {
    if (stop.stop_requested()) break;
    const auto now = Clock::now();
    const auto [entry, fresh] = given_.try_emplace(request.pod);
    Given& given = entry->second;
    if (!fresh && given.value == request.value && now - given.at < kRewritePeriod) continue;
    given = {.value = request.value, .at = fresh ? now - kRewritePeriod + kSettled : now};
    if (scores_.prepare(request.pod, request.path, request.value)) prepared.push_back(request.pod);
  }
  // Nothing is written that could not be put back after a crash; it is tried again at the next
  // wish.
  if (!save()) {
    for (const CgroupId pod : prepared)
      given_.erase(pod);
    return;
  }
  if (prepared.empty()) return;
  for (const CgroupId pod : prepared) {
    if (stop.stop_requested()) break;
    scores_.write(pod);
  }
  save();
}

void OomScoreWorker::restore_unrequested(const std::vector<OomScoreRequest>& requests) {
  std::vector<CgroupId> wished;
  for (const OomScoreRequest& request : requests)
    wished.push_back(request.pod);
  std::sort(wished.begin(), wished.end());
  std::vector<CgroupId> unwished;
  for (const auto& [pod, found] : scores_.found())
    if (!std::binary_search(wished.begin(), wished.end(), pod)) unwished.push_back(pod);
  for (const CgroupId pod : unwished)
    scores_.restore(pod);
  std::erase_if(given_, [&](const auto& entry) {
    return !std::binary_search(wished.begin(), wished.end(), entry.first);
  });
}

bool OomScoreWorker::save() {
  const auto saved = file_.save(scores_.found());
  if (!saved && !complained_)
    log::error("{}: no oom_score_adj is written that a crash would leave so", saved.error().what);
  complained_ = !saved;
  return saved.has_value();
}

void OomScoreWorker::pause() {
  if (++since_pause_ < kBurst) return;
  since_pause_ = 0;
  std::this_thread::sleep_for(kPauseBetweenBursts);
}

}  // namespace headroom::daemon
