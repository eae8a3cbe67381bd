// SPDX-License-Identifier: Apache-2.0
// ShardThreads: threads that work on parts of a range of nodes, and wait for each other.
#pragma once

#include "simulate/node/node.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstddef>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace headroom::simulate {

class ShardThreads {
 public:
  using Work = std::function<void(std::size_t begin, std::size_t end, Scratch& scratch)>;

  // For work on `size` nodes, on at most `count` threads, of which one is the caller's. A thread
  // without a part of its own would only be waited for.
  ShardThreads(std::size_t count, std::size_t size)
      : scratch_(std::clamp<std::size_t>((size + kShard - 1) / kShard, 1,
                                         std::max<std::size_t>(count, 1))),
        size_(size),
        barrier_(static_cast<std::ptrdiff_t>(scratch_.size())) {
    for (std::size_t i = 1; i < scratch_.size(); ++i)
      threads_.emplace_back([this, i] {
        while (true) {
          barrier_.arrive_and_wait();
          if (stop_) return;
          take_shards(scratch_[i]);
          barrier_.arrive_and_wait();
        }
      });
  }
  ~ShardThreads() {
    stop_ = true;
    if (!threads_.empty()) barrier_.arrive_and_wait();
    for (std::thread& thread : threads_)
      thread.join();
  }
  ShardThreads(const ShardThreads&) = delete;
  ShardThreads& operator=(const ShardThreads&) = delete;

  // Calls `work` for parts of [0, size) until all are done.
  void run(const Work& work) {
    work_ = &work;
    next_ = 0;
    if (threads_.empty()) return take_shards(scratch_[0]);
    barrier_.arrive_and_wait();
    take_shards(scratch_[0]);
    barrier_.arrive_and_wait();
  }

 private:
  static constexpr std::size_t kShard = 128;  // nodes

  void take_shards(Scratch& scratch) {
    while (true) {
      const std::size_t begin = next_.fetch_add(kShard);
      if (begin >= size_) return;
      (*work_)(begin, std::min(begin + kShard, size_), scratch);
    }
  }

  std::vector<Scratch> scratch_;
  const std::size_t size_;
  std::barrier<> barrier_;
  std::vector<std::thread> threads_;
  const Work* work_ = nullptr;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace headroom::simulate
