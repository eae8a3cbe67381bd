// SPDX-License-Identifier: Apache-2.0
// ReclaimThreads: writes memory.reclaim of cgroups on threads of its own, because the write waits
// for the memory: for a slow disk this may take seconds. One request for a cgroup at a time.
#pragma once

#include "base/file_io.h"

#include <headroom/units.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace headroom::act {

// Bytes in swap up to which a cgroup with this memory.swap.high is reclaimed. Above the limit the
// kernel lets its tasks sleep, and a write of memory.reclaim swaps more than it asks for.
constexpr std::int64_t swap_goal(std::int64_t swap_high) {
  return swap_high - swap_high / 8;
}

class ReclaimThreads {
 public:
  struct Request {
    CgroupId cgroup;
    std::shared_ptr<const Fd> directory;
    Bytes bytes{};
    std::optional<int> swappiness{};
    bool within_swap_high = false;  // no further than swap_goal() of its memory.swap.high
  };
  // What was done for one cgroup.
  struct Done {
    bool running = false;
    std::uint64_t bytes = 0;  // reclaimed, in total
    int error = 0;            // errno of the last request; EAGAIN: less than requested
  };
  // Bytes of one write. A stop is noticed between two writes.
  static constexpr std::int64_t kStep = std::int64_t{4} << 20;

  // `name` is that of the threads.
  ReclaimThreads(std::size_t count, std::string name);
  // Waits for the writes that are under way.
  ~ReclaimThreads();
  ReclaimThreads(const ReclaimThreads&) = delete;
  ReclaimThreads& operator=(const ReclaimThreads&) = delete;

  // False: a request for this cgroup is not done yet. Never waits for reclaim.
  bool submit(Request request);
  Done done(CgroupId cgroup) const;
  void forget(CgroupId cgroup);
  std::uint64_t total() const;  // bytes, of all cgroups

 private:
  void run();
  void reclaim(const Request& request);
  bool is_stopped() const;
  void record(CgroupId cgroup, std::uint64_t bytes, int error);

  const std::string name_;
  mutable std::mutex mutex_;  // protects the members below
  std::condition_variable changed_;
  std::deque<Request> queue_;
  std::map<CgroupId, Done> done_;
  std::uint64_t total_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace headroom::act
