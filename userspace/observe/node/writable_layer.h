// SPDX-License-Identifier: Apache-2.0
// Writable layers of running containers: the upper directory of the overlay a container's processes
// have for a root, whichever runtime mounted it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::observe {

// From the text of /proc/PID/mountinfo; absent: the root is no overlay.
std::optional<std::string> upper_directory(std::string_view mountinfo);

// Those of one pod. What a first process's root is mounted from does not change while it is the
// same mount, so its table of mounts, which is long, is read once; and a cgroup that has given the
// same answer a few times is asked seldom.
class WritableLayers {
 public:
  // The writable layers of the containers whose cgroup directories are given, in that order, each
  // once. Empty if their processes share the host's root.
  std::vector<std::string> of(const std::vector<std::string>& cgroups);

 private:
  // A cgroup is asked in every call until the answer was the same this many times (fewer if it has
  // no process, since one may still start), then in one call of kSettledReadPeriod.
  static constexpr unsigned kSettled = 1, kSettledEmpty = 2, kSettledReadPeriod = 8;

  // Which mount a process has for a root.
  struct Root {
    std::string pid;
    std::uint64_t mount_id = 0;
    dev_t device = 0;
    friend bool operator==(const Root&, const Root&) = default;
  };
  struct Known {
    std::string cgroup;
    std::optional<Root> root;  // absent: no process of this pid namespace
    std::optional<std::string> upper;
    unsigned same = 0;  // how often the answer was this again

    bool settled() const { return same >= (root ? kSettled : kSettledEmpty); }
  };

  Known refresh(const std::string& cgroup, const Known* before) const;
  static std::optional<Root> root_of(const std::string& cgroup);

  std::vector<Known> known_;  // of the last call
  unsigned calls_ = 0;
};

}  // namespace headroom::observe
