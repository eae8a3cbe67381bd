// SPDX-License-Identifier: Apache-2.0
#include "act/limits/reclaim_threads.h"

#include "act/limits/memory_max_overrides.h"
#include "base/cgroup_directory.h"
#include "base/log/journal.h"
#include "base/process_stat.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace headroom::act {
namespace {

std::optional<std::int64_t> usage_of(int directory) {
  return number_at(directory, "memory.current");
}

// What a write with an error reclaimed is not reported: it is read off the usage. 0 if unknown.
std::int64_t gained_in_spite(std::optional<std::int64_t> before, std::optional<std::int64_t> after,
                             std::int64_t step) {
  return before && after ? std::clamp<std::int64_t>(*before - *after, 0, step) : 0;
}

// How much of `wanted` the next write asks for, 0: nothing more.
std::int64_t next_step(const ReclaimThreads::Request& request, std::int64_t wanted) {
  const std::int64_t step = std::min(wanted, ReclaimThreads::kStep);
  const int directory = request.directory->get();
  const auto high =
      request.within_swap_high ? number_at(directory, "memory.swap.high") : std::nullopt;
  if (!high) return step;
  const auto swapped = number_at(directory, "memory.swap.current");
  if (!swapped) return 0;
  return std::clamp<std::int64_t>(swap_goal(*high) - *swapped, 0, std::min(step, *high / 8));
}

}  // namespace

ReclaimThreads::ReclaimThreads(std::size_t count, std::string name) : name_(std::move(name)) {
  for (std::size_t i = 0; i < count; ++i)
    threads_.emplace_back([this] { run(); });
}

ReclaimThreads::~ReclaimThreads() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_)
    thread.join();
}

bool ReclaimThreads::submit(Request request) {
  {
    const std::lock_guard lock(mutex_);
    Done& done = done_[request.cgroup];
    if (done.running) return false;
    done.running = true;
    queue_.push_back(std::move(request));
  }
  changed_.notify_one();
  return true;
}

ReclaimThreads::Done ReclaimThreads::done(CgroupId cgroup) const {
  const std::lock_guard lock(mutex_);
  const auto found = done_.find(cgroup);
  return found == done_.end() ? Done{} : found->second;
}

void ReclaimThreads::forget(CgroupId cgroup) {
  const std::lock_guard lock(mutex_);
  const auto found = done_.find(cgroup);
  if (found != done_.end() && !found->second.running) done_.erase(found);
}

std::uint64_t ReclaimThreads::total() const {
  const std::lock_guard lock(mutex_);
  return total_;
}

void ReclaimThreads::run() {
  report::set_thread_name(name_.c_str());
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || !queue_.empty(); });
    if (stop_) return;
    const Request request = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    log::log_exceptions("reclaim memory", [&] { reclaim(request); });
    lock.lock();
    done_[request.cgroup].running = false;
  }
}

void ReclaimThreads::reclaim(const Request& request) {
  const int directory = request.directory->get();
  for (std::int64_t left = request.bytes.count; !is_stopped();) {
    const std::int64_t step = next_step(request, left);
    if (step == 0) return;
    const auto before = usage_of(directory);
    const int error = reclaim_memory(directory, Bytes{step}, request.swappiness);
    const std::int64_t gained =
        error == 0 ? step : gained_in_spite(before, usage_of(directory), step);
    record(request.cgroup, static_cast<std::uint64_t>(gained), error);
    if (error != 0) return;
    left -= step;
  }
}

bool ReclaimThreads::is_stopped() const {
  const std::lock_guard lock(mutex_);
  return stop_;
}

void ReclaimThreads::record(CgroupId cgroup, std::uint64_t bytes, int error) {
  const std::lock_guard lock(mutex_);
  Done& done = done_[cgroup];
  done.bytes += bytes;
  done.error = error;
  total_ += bytes;
}

}  // namespace headroom::act
