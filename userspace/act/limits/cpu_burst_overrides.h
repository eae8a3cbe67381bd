// SPDX-License-Identifier: Apache-2.0
// CpuBurstOverrides: sets cpu.max.burst of cgroups, and restores the value that it had. Each
// original value is saved before the first write, so that the next daemon restores it after a
// crash. A value that another program wrote since is kept.
//
// The kernel accepts a burst up to the quota of the same cgroup. A lower cpu.max that another
// program writes meanwhile is refused with EINVAL if it is less than the burst.
#pragma once

#include <headroom/result.h>
#include <headroom/units.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

namespace headroom::act {

// Microseconds in each period.
struct OriginalCpuBurst {
  std::string path;  // of the cgroup, from the root on
  std::uint64_t found = 0;
  std::uint64_t set = 0;
  friend bool operator==(const OriginalCpuBurst&, const OriginalCpuBurst&) = default;
};

// All functions are for one thread. They return 0 or an errno.
class CpuBurstOverrides {
 public:
  using Found = std::map<CgroupId, OriginalCpuBurst>;
  // Saves the original values so that they survive this process; empty: removes the file.
  using Save = std::function<Result<>(const Found&)>;

  CpuBurstOverrides(std::filesystem::path cgroup_root, Save save);
  CpuBurstOverrides(const CpuBurstOverrides&) = delete;
  CpuBurstOverrides& operator=(const CpuBurstOverrides&) = delete;

  // Restores what an earlier daemon left.
  void restore_former(Found former);

  // EBUSY: the cgroup has a burst of its own, of as much or more: nothing is done. ENOENT: it was
  // removed, or the kernel has no cpu.max.burst (before 5.14).
  int grant(CgroupId cgroup, const std::string& path, std::uint64_t burst);
  int withdraw(CgroupId cgroup);
  void withdraw_all();
  const Found& found() const { return found_; }

 private:
  void save();

  const std::string root_;
  const Save save_;
  Found found_;
};

}  // namespace headroom::act
