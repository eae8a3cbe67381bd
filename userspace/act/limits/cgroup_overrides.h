// SPDX-License-Identifier: Apache-2.0
// CgroupOverrides: sets a file of cgroups, one of those in OverriddenFile of each cgroup, and
// restores the value that it had. Each original value is saved before the first write, so that the
// next daemon restores it after a crash. A value that another program wrote since is kept.
//
// The kernel accepts a burst up to the quota of the same cgroup. A lower cpu.max that another
// program writes meanwhile is refused with EINVAL if it is less than the burst. While cpu.idle is
// 1, cpu.weight reads 0 (1 since Linux 6.12) and a write to it is refused with EINVAL; when
// cpu.idle is cleared, the kernel sets cpu.weight to 100 (Linux 5.15, sched_group_set_idle()).
//
// memory.swap.high exists since Linux 5.8, memory.zswap.writeback since 6.8. Up to 6.10 a cgroup
// takes the memory.zswap.writeback of its parent when it is created, and later ones only follow it.
#pragma once

#include <headroom/result.h>
#include <headroom/units.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace headroom::act {

// The file of the cgroup. The order is that of the state files.
enum class OverriddenFile : std::uint8_t { kBurst, kIdle, kWeight, kSwapHigh, kZswapWriteback };
constexpr const char* file_of(OverriddenFile setting) {
  switch (setting) {
    case OverriddenFile::kBurst:
      return "cpu.max.burst";
    case OverriddenFile::kIdle:
      return "cpu.idle";
    case OverriddenFile::kWeight:
      return "cpu.weight";
    case OverriddenFile::kSwapHigh:
      return "memory.swap.high";
    case OverriddenFile::kZswapWriteback:
      return "memory.zswap.writeback";
  }
  return "";
}

// "max" of memory.swap.high.
inline constexpr std::uint64_t kNoLimit = UINT64_MAX;

// Values as in the file: a burst is in microseconds in each period, memory.swap.high in bytes.
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
  struct Wanted {
    CgroupId cgroup;
    std::string path;
    OverriddenFile file = OverriddenFile::kSwapHigh;
    std::uint64_t value = 0;
    // The cgroup is below one that has this value by an earlier call: if it has the value too, it
    // took it over when it was created.
    bool inherited = false;
  };
  // Sets them with one save; the results are in the same order. EBUSY: the cgroup has such a value,
  // or a lower one, of its own. ENOENT: it was removed, or the kernel has no such file. EIO: the
  // original values could not be saved.
  std::vector<int> set_all(const std::vector<Wanted>& wanted);

  int restore(CgroupId cgroup);
  // Restores all but these, with one save. Returns those that the kernel refused.
  std::vector<CgroupId> restore_others(const std::set<CgroupId>& kept);
  void restore_all();
  // Forgets the cgroups whose value another program has changed.
  void forget_changed();
  const Found& found() const { return found_; }

 private:
  int set(Wanted wanted);
  // Adds the entry of the cgroup to `found_`, if there is something to write.
  int prepare(const Wanted& wanted);
  int write(CgroupId cgroup);
  int write_original(OriginalValue& entry, CgroupId cgroup);
  int clear_idle(OriginalValue& entry, int directory);
  void save();

  const std::string root_;
  const Save save_;
  Found found_;
};

}  // namespace headroom::act
