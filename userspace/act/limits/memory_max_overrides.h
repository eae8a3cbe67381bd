// SPDX-License-Identifier: Apache-2.0
// MemoryMaxOverrides: raises memory.max of cgroups and lowers it again, without letting the kernel
// kill for it. Each original value is saved before the first write, so that the next daemon lowers
// it after a crash. A value that another program wrote since is kept.
//
// Lowering: a limit that is written below usage makes the kernel kill, and usage may grow between a
// check and the write. So memory.high is first set below the new limit: tasks above it are slowed
// down, not killed. Then usage is read again, and memory.max is written only if usage is below that
// mark.
#pragma once

#include <headroom/result.h>
#include <headroom/units.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace headroom::act {

struct OriginalMemoryMax {
  std::string path;  // of the cgroup, from the root on
  Bytes found{};
  Bytes set{};      // when it was last saved
  Bytes ceiling{};  // the most that is ever set
  // What was written to memory.high, and what that was before (INT64_MAX: "max"); absent: nothing
  // was written.
  std::optional<Bytes> brake{};
  Bytes high_found{INT64_MAX};

  bool raised() const { return set > found; }
  friend bool operator==(const OriginalMemoryMax&, const OriginalMemoryMax&) = default;
};

// All functions are for one thread. `directory` is the cgroup's. They return 0 or an errno.
class MemoryMaxOverrides {
 public:
  using Found = std::map<CgroupId, OriginalMemoryMax>;
  // Saves the original values so that they survive this process; empty: removes the file.
  using Save = std::function<Result<>(const Found&)>;

  MemoryMaxOverrides(std::filesystem::path cgroup_root, Save save);
  MemoryMaxOverrides(const MemoryMaxOverrides&) = delete;
  MemoryMaxOverrides& operator=(const MemoryMaxOverrides&) = delete;

  // Takes over what an earlier daemon left raised.
  void resume(Found former) { found_ = std::move(former); }

  // ESTALE: another program has written another value; it is the original from now on.
  int raise(CgroupId cgroup, int directory, const std::string& path, Bytes to, Bytes ceiling);
  // EAGAIN: usage is too near to `to`; nothing has changed. At the original value the cgroup is
  // forgotten.
  int lower(CgroupId cgroup, int directory, Bytes to);
  // memory.high just below memory.max. EBUSY: memory.high has another program's value; nothing is
  // done.
  int set_brake(CgroupId cgroup, int directory, const std::string& path, Bytes high, Bytes ceiling);
  int release_brake(CgroupId cgroup, int directory);
  bool has_brake(CgroupId cgroup) const;

  // The cgroup was removed.
  void forget(CgroupId cgroup);
  const Found& found() const { return found_; }
  // memory.max before it was raised; absent: it is not raised.
  std::optional<Bytes> original(CgroupId cgroup) const;

  // Reclaims and lowers, as far as that goes at once. What stays raised stays in the file.
  void restore_all();

 private:
  using Entry = Found::iterator;
  void save();
  // The entry of the cgroup, saved if it is new; null: it could not be saved, or read.
  OriginalMemoryMax* prepare(CgroupId cgroup, int directory, const std::string& path,
                             Bytes ceiling);
  void erase_unchanged(Entry entry);
  int write_guard(int directory, OriginalMemoryMax& held, Bytes guard, Bytes high);
  int restore(CgroupId cgroup, const OriginalMemoryMax& entry);

  const std::string root_;
  const Save save_;
  Found found_;
};

// reclaim_memory(): writes memory.reclaim and waits until it is done. With `swappiness`, by it
// where the kernel takes it, and without where it does not. EAGAIN: less was reclaimed; ENOENT:
// there is no memory.reclaim (before 5.19).
int reclaim_memory(int directory, Bytes bytes, std::optional<int> swappiness = std::nullopt);

}  // namespace headroom::act
