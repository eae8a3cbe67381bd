// SPDX-License-Identifier: Apache-2.0
// LimitLoweringThreads: lowers limits by memory.reclaim, which waits for the memory and kills no
// process: each limit on a thread of its own.
#pragma once

#include <headroom/units.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace headroom::act {

// LimitLowering: reclaims memory from cgroups until they use less than a limit, before the limit is
// written. Writing a limit below usage would block the writer and let the kernel kill.

class LimitLowering {
 public:
  struct End {
    std::string name;
    bool reached = false;  // it uses no more
    Bytes in_use{};        // as it was read last
    int error = 0;         // errno of what could not be read or written
  };

  virtual ~LimitLowering() = default;
  // One at a time of a name; begun where one is under way is nothing. Returns at once.
  virtual void begin(const std::string& name, const std::filesystem::path& cgroup, Bytes max_usage,
                     Duration timeout) = 0;
  virtual bool in_progress(const std::string& name) const = 0;
  // Those that ended since the last call.
  virtual std::vector<End> collect_finished() = 0;
};

class LimitLoweringThreads final : public LimitLowering {
 public:
  // Stops what is under way after the piece it is at.
  ~LimitLoweringThreads() override = default;

  void begin(const std::string& name, const std::filesystem::path& cgroup, Bytes max_usage,
             Duration timeout) override;
  bool in_progress(const std::string& name) const override { return async_actions_.contains(name); }
  std::vector<End> collect_finished() override;

 private:
  struct RunningAction {
    End end;
    std::atomic<bool> finished{false};  // then `end` is whole
    std::jthread thread;
  };
  std::map<std::string, std::unique_ptr<RunningAction>> async_actions_;
};

// What such a thread does.
LimitLowering::End reclaim_until_below(std::string name, const std::filesystem::path& cgroup,
                                       Bytes max_usage, Duration timeout,
                                       const std::stop_token& stop);

}  // namespace headroom::act
