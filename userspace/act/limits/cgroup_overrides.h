// SPDX-License-Identifier: Apache-2.0
// CgroupOverrides: sets cpu.max.burst, cpu.idle or cpu.weight of cgroups, one of them of each
// cgroup, and restores the value that it had. Each original value is saved before the first write,
// so that the next daemon restores it after a crash. A value that another program wrote since is
// kept.
//
// The kernel accepts a burst up to the quota of the same cgroup. A lower cpu.max that another
// program writes meanwhile is refused with EINVAL if it is less than the burst. While cpu.idle is
// 1, cpu.weight reads 0 (1 since Linux 6.12) and a write to it is refused with EINVAL; when
// cpu.idle is cleared, the kernel sets cpu.weight to 100 (Linux 5.15, sched_group_set_idle()).
#pragma once

#include <headroom/result.h>
#include <headroom/units.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

namespace headroom::act {

// The file of the cgroup. The order is that of the state files.
enum class OverriddenFile : std::uint8_t { kBurst, kIdle, kWeight };
constexpr const char* file_of(OverriddenFile setting) {
  switch (setting) {
    case OverriddenFile::kBurst:
      return "cpu.max.burst";
    case OverriddenFile::kIdle:
      return "cpu.idle";
    case OverriddenFile::kWeight:
      return "cpu.weight";
  }
  return "";
}

// Values as in the file: a burst is in microseconds in each period.
struct OriginalValue {
  std::string path;  // of the cgroup, from the root on
  std::uint64_t found = 0;
  std::uint64_t set = 0;
  OverriddenFile setting = OverriddenFile::kBurst;
  std::uint64_t weight = 0;  // with kIdle: cpu.weight while cpu.idle was 0
  bool clearing = false;     // with kIdle: cpu.idle may be cleared, and cpu.weight not restored yet
  friend bool operator==(const OriginalValue&, const OriginalValue&) = default;
};

// All functions are for one thread. They return 0 or an errno.
class CgroupOverrides {
 public:
  using Found = std::map<CgroupId, OriginalValue>;
  // Saves the original values so that they survive this process; empty: removes the file.
  using Save = std::function<Result<>(const Found&)>;

  CgroupOverrides(std::filesystem::path cgroup_root, Save save);
  CgroupOverrides(const CgroupOverrides&) = delete;
  CgroupOverrides& operator=(const CgroupOverrides&) = delete;

  // Restores what an earlier daemon left.
  void restore_former(Found former);

  // Microseconds. EBUSY: the cgroup has a burst of its own, of as much or more: nothing is done.
  // ENOENT: it was removed, or the kernel has no cpu.max.burst (before 5.14). EIO: the original
  // value could not be saved.
  int set_burst(CgroupId cgroup, const std::string& path, std::uint64_t burst);
  // Sets cpu.idle, or cpu.weight to 1 where the kernel refuses that or has no cpu.idle (before
  // 5.15). EBUSY: the cgroup is idle already, or has this weight: nothing is done.
  int suppress(CgroupId cgroup, const std::string& path);
  int restore(CgroupId cgroup);
  void restore_all();
  const Found& found() const { return found_; }

 private:
  int set(CgroupId cgroup, OriginalValue entry);
  int clear_idle(OriginalValue& entry, int directory);
  void save();

  const std::string root_;
  const Save save_;
  Found found_;
};

}  // namespace headroom::act
