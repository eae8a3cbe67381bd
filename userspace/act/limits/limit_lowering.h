// SPDX-License-Identifier: Apache-2.0
// LimitLoweringThreads: reclaims memory before a limit is lowered, on one thread for each limit: a
// write to memory.reclaim waits for the memory and kills no process. Also writes single settings of
// cgroups.
#pragma once

#include "base/file_io.h"
#include "judge/allocatable/cgroup/cgroup_values.h"

#include <headroom/result.h>
#include <headroom/units.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace headroom::act {

// The cgroups in which enable_controller() enables a controller. It is used for hugetlb, which
// systemd does not manage.
enum class ControllerScope {
  kItself,    // the cgroup has it
  kChildren,  // and its direct children as well
};

// Enables the controller from the root down to the cgroup at `path` ("/kubepods.slice"), where it
// is not enabled yet.
Result<> enable_controller(const std::filesystem::path& root, std::string_view path,
                           std::string_view controller, ControllerScope scope);

// Only memory.oom.group and hugetlb.*: all others have a systemd property (unit_properties()).
CgroupValues without_systemd_property(const CgroupValues& values);

// LimitLowering: reclaims memory from cgroups until they use less than a limit, before the limit is
// written. Writing a limit below usage would block the writer and let the kernel kill.

class LimitLowering {
 public:
  struct End {
    std::string name;
    bool reached = false;  // the usage is at most the limit
    Bytes in_use{};        // the last reading of the usage
    int error = 0;         // errno of a failed read or write
  };

  virtual ~LimitLowering() = default;
  // Starts lowering; does nothing if one of the same name is running. Returns at once. `cgroup` is
  // its directory.
  virtual void begin(const std::string& name, Fd cgroup, Bytes max_usage, Duration timeout) = 0;
  virtual bool in_progress(const std::string& name) const = 0;
  // The lowerings that ended since the last call.
  virtual std::vector<End> collect_finished() = 0;
};

class LimitLoweringThreads final : public LimitLowering {
 public:
  // Stops each running one after its current step.
  ~LimitLoweringThreads() override = default;

  void begin(const std::string& name, Fd cgroup, Bytes max_usage, Duration timeout) override;
  bool in_progress(const std::string& name) const override { return async_actions_.contains(name); }
  std::vector<End> collect_finished() override;

 private:
  struct RunningAction {
    End end;
    std::atomic<bool> finished{false};  // true: `end` is complete
    std::jthread thread;
  };
  std::map<std::string, std::unique_ptr<RunningAction>> async_actions_;
};

// The function that each thread of LimitLoweringThreads runs.
LimitLowering::End reclaim_until_below(std::string name, int cgroup, Bytes max_usage,
                                       Duration timeout, const std::stop_token& stop);

}  // namespace headroom::act
