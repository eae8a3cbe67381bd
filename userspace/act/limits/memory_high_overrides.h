// SPDX-License-Identifier: Apache-2.0
// MemoryHighOverrides: changes memory.high of cgroups for a limited time. The original value is
// restored afterwards, when the daemon ends, and at its next start after a crash.
//
// The original is saved before anything is written. For a unit the value is set through systemd,
// for other cgroups the file is written. A value that another program wrote since is kept.
#pragma once

#include "act/units/runtime_properties.h"

#include <headroom/result.h>
#include <headroom/units.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

namespace headroom::act {

struct OriginalMemoryHigh {
  std::string path;            // of the cgroup, from the root on
  std::optional<Bytes> found;  // absent: no limit
  Bytes set{};
  // systemd had a runtime setting of it before. An older release did not ask.
  bool had_setting = true;
  friend bool operator==(const OriginalMemoryHigh&, const OriginalMemoryHigh&) = default;
};

class MemoryHighOverrides {
 public:
  using Found = std::map<CgroupId, OriginalMemoryHigh>;
  // Saves the original values so that they survive this process; empty: removes the file.
  using Save = std::function<Result<>(const Found&)>;
  // memory.high of the cgroup is lifted for a kill: it is neither our value nor another program's.
  using IsLifted = std::function<bool(CgroupId)>;

  // Without `is_lifted` none is.
  MemoryHighOverrides(std::filesystem::path cgroup_root, Save save, IsLifted is_lifted = {},
                      RuntimeProperties properties = RuntimeProperties("headroomd-limits"));
  // Restores all changed values.
  ~MemoryHighOverrides();
  MemoryHighOverrides(const MemoryHighOverrides&) = delete;
  MemoryHighOverrides& operator=(const MemoryHighOverrides&) = delete;

  // These wait for systemd or for reclaim, some seconds at most; on any thread but the loop's.
  // Return 0 or an errno: EBUSY: it is overridden, or lifted, and tried again later. `directory` is
  // the cgroup's.
  int override_high(CgroupId cgroup, int directory, Bytes high);
  int restore(CgroupId cgroup);
  // Restores the values that an earlier daemon left, then all others.
  void restore_all(Found former = {});

  // Waits like the functions above.
  std::size_t held() const;

 private:
  // `directory` is the cgroup's in each: a cgroup that was made since at the same path is not
  // written.
  Result<> write(int directory, const std::string& path, std::optional<Bytes> high);
  Result<> write_original(int directory, const OriginalMemoryHigh& held);
  Result<> restore_value(CgroupId cgroup, const OriginalMemoryHigh& held);
  void forget_removed();
  void restore_failed();
  Result<> leave_to_others(const OriginalMemoryHigh& held);
  Result<> restore_setting(const OriginalMemoryHigh& held);
  void wait_until_restarted_is_without(const OriginalMemoryHigh& held) const;
  // systemd keeps a removed unit's.
  Result<> remove_setting(const std::string& path);

  const std::string root_;
  const Save save_;
  const IsLifted is_lifted_;
  mutable std::mutex mutex_;  // protects the members below
  Found found_;
  // Of those: systemd was asked and did not say whether it did it, and not again for the original.
  std::set<CgroupId> failed_;
  RuntimeProperties properties_;
};

// Reclaims `bytes` of page cache of the cgroup, the coldest first, without swapping. Waits until it
// is done. Returns 0; EAGAIN: less was reclaimed; EOPNOTSUPP: this kernel would swap (before 6.11,
// on a node with swap); ENOENT: there is no memory.reclaim (before 5.19).
int reclaim_page_cache(int directory, Bytes bytes);

}  // namespace headroom::act
