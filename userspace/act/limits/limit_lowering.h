// SPDX-License-Identifier: Apache-2.0
// LimitLowering: reclaims memory from cgroups until they use less than a limit, before the limit is
// written. Writing a limit below usage would block the writer and let the kernel kill.
#pragma once

#include <headroom/units.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace headroom::act {

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

}  // namespace headroom::act
