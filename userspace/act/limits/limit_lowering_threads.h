// SPDX-License-Identifier: Apache-2.0
// LimitLoweringThreads: lowers limits by memory.reclaim, which waits for the memory and kills no
// process: each limit on a thread of its own.
#pragma once

#include "act/limits/limit_lowering.h"

#include <atomic>
#include <map>
#include <memory>
#include <thread>

namespace headroom::act {

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
