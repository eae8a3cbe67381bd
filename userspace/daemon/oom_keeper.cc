// SPDX-License-Identifier: Apache-2.0
#include "daemon/oom_keeper.h"

#include "report/journal.h"
#include "report/self_threads.h"

#include <algorithm>
#include <utility>

namespace headroom::daemon {

OomKeeper::OomKeeper(std::filesystem::path cgroup_root, const std::filesystem::path& state_dir)
    : scores_(std::move(cgroup_root), [this] { rest(); }), file_(state_dir) {
  resume();
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

OomKeeper::~OomKeeper() = default;

void OomKeeper::resume() {
  if (auto found = file_.load())
    scores_.resume(std::move(*found));
  else
    log::error("{}: oom_score_adj is put back to what it is now", found.error().what);
}

void OomKeeper::wish(std::vector<OomWish> wishes) {
  {
    const std::lock_guard lock(mutex_);
    next_ = std::move(wishes);
  }
  news_.notify_one();
}

void OomKeeper::run(const std::stop_token& stop) {
  report::name_thread("oom");
  while (!stop.stop_requested()) {
    std::unique_lock lock(mutex_);
    if (!news_.wait(lock, stop, [this] { return next_.has_value(); })) break;
    const std::vector<OomWish> wishes = std::move(*std::exchange(next_, std::nullopt));
    lock.unlock();
    fulfil(wishes, stop);
  }
  scores_.restore_all();
  save();
}

void OomKeeper::fulfil(const std::vector<OomWish>& wishes, const std::stop_token& stop) {
  restore_the_unwished(wishes);
  std::vector<CgroupId> prepared;
  for (const OomWish& wish : wishes) {
    if (stop.stop_requested()) break;
    const auto now = Clock::now();
    const auto [entry, fresh] = given_.try_emplace(wish.pod);
    Given& given = entry->second;
    if (!fresh && given.value == wish.value && now - given.at < kAgain) continue;
    given = {.value = wish.value, .at = fresh ? now - kAgain + kSettled : now};
    if (scores_.prepare(wish.pod, wish.path, wish.value)) prepared.push_back(wish.pod);
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

void OomKeeper::restore_the_unwished(const std::vector<OomWish>& wishes) {
  std::vector<CgroupId> wished;
  for (const OomWish& wish : wishes)
    wished.push_back(wish.pod);
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

bool OomKeeper::save() {
  const auto saved = file_.save(scores_.found());
  if (!saved && !complained_)
    log::error("{}: no oom_score_adj is written that a crash would leave so", saved.error().what);
  complained_ = !saved;
  return saved.has_value();
}

void OomKeeper::rest() {
  if (++since_rest_ < kBurst) return;
  since_rest_ = 0;
  std::this_thread::sleep_for(kRest);
}

}  // namespace headroom::daemon
