// SPDX-License-Identifier: Apache-2.0
#include "daemon/state/oom_score_worker.h"

#include "base/log/journal.h"
#include "base/process_stat.h"

#include <algorithm>
#include <utility>

namespace headroom::daemon {

OomScoreWorker::OomScoreWorker(std::filesystem::path cgroup_root,
                               const std::filesystem::path& state_dir, Duration settled)
    : scores_(
          std::move(cgroup_root), [this] { pause(); }, settled),
      file_(act::oom_score_file(state_dir)) {
  resume();
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

OomScoreWorker::~OomScoreWorker() = default;

void OomScoreWorker::resume() {
  if (auto found = file_.load()) {
    saved_ = *found;
    scores_.resume(std::move(*found));
  } else {
    log::error(
        "{}: the original values of oom_score_adj are unknown; the current ones will be restored",
        found.error().what);
  }
}

void OomScoreWorker::request(std::vector<OomScoreRequest> requests) {
  next_.put(std::move(requests));
}

void OomScoreWorker::run(const std::stop_token& stop) {
  report::set_thread_name("oom");
  while (!stop.stop_requested()) {
    const auto requests = next_.take(stop);
    if (!requests) break;
    log::log_exceptions("write oom_score_adj", [&] { write_requested(*requests, stop); });
  }
  log::log_exceptions("restore oom_score_adj", [this] {
    scores_.restore_all();
    save();
  });
}

void OomScoreWorker::write_requested(const std::vector<OomScoreRequest>& requests,
                                     const std::stop_token& stop) {
  restore_unrequested(requests);
  std::vector<CgroupId> prepared;
  for (const OomScoreRequest& request : requests) {
    if (stop.stop_requested()) break;
    const auto now = Clock::now();
    const auto [entry, is_new] = applied_.try_emplace(request.pod);
    AppliedScore& applied = entry->second;
    if (!is_new && applied.value == request.value && now - applied.at < kRewritePeriod) continue;
    if (scores_.prepare(request.pod, request.path, request.value)) prepared.push_back(request.pod);
    const bool soon = is_new || scores_.left_young();
    applied = {.value = request.value, .at = soon ? now - kRewritePeriod + kFirstRescan : now};
  }
  // Nothing is written unless the original values are saved, so that they can be restored after a
  // crash. These pods are tried again at the next request.
  if (!save()) {
    for (const CgroupId pod : prepared)
      applied_.erase(pod);
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
  std::vector<CgroupId> desired_pods;
  for (const OomScoreRequest& request : requests)
    desired_pods.push_back(request.pod);
  std::sort(desired_pods.begin(), desired_pods.end());
  std::vector<CgroupId> other_pods;
  for (const auto& [pod, found] : scores_.found())
    if (!std::binary_search(desired_pods.begin(), desired_pods.end(), pod))
      other_pods.push_back(pod);
  for (const CgroupId pod : other_pods)
    scores_.restore(pod);
  std::erase_if(applied_, [&](const auto& entry) {
    return !std::binary_search(desired_pods.begin(), desired_pods.end(), entry.first);
  });
}

bool OomScoreWorker::save() {
  if (scores_.found() == saved_ && !saved_.empty()) return true;
  const auto saved = file_.save(scores_.found());
  if (saved) saved_ = scores_.found();
  if (!saved && !failure_logged_)
    log::error("{}: no oom_score_adj is written that a crash would leave so", saved.error().what);
  failure_logged_ = !saved;
  return saved.has_value();
}

void OomScoreWorker::pause() {
  if (++since_pause_ < kBurst) return;
  since_pause_ = 0;
  std::this_thread::sleep_for(kPauseBetweenBursts);
}

}  // namespace headroom::daemon
