// SPDX-License-Identifier: Apache-2.0
// CpuWaitSource: the waits of pods for CPUs, by cause (judge/waits/cpu_wait_accounts.h), from what
// a sweep has read, /proc/stat and cpuset.cpus.effective. /proc/stat is read once a window. And the
// pods that waited for memory while others took it, from the same sweep.
#pragma once

#include "base/file_io.h"
#include "judge/waits/cpu_wait_accounts.h"
#include "judge/waits/memory_wait_pairs.h"
#include "observe/cgroup/cgroup_inventory.h"

#include <headroom/ports.h>
#include <headroom/snapshot.h>
#include <headroom/waits.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace headroom::observe {

// The lines of CPUs in /proc/stat; `ticks`: in a second.
CpuTimes parse_cpu_times(std::string_view proc_stat, std::int64_t ticks);

class CpuTimeReader {
 public:
  explicit CpuTimeReader(const std::filesystem::path& proc);

  CpuTimes read();

 private:
  Fd stat_;
  std::string text_;
};

// CpusetCache: the CPUs that cgroups may use. A window reads a limited number of files: those of
// cgroups that were never read first, then the oldest.

class CpusetCache {
 public:
  explicit CpusetCache(std::filesystem::path cgroup_root) : cgroup_root_(std::move(cgroup_root)) {}

  void begin_window(Instant at, const CgroupInventory& inventory);
  // Null: unknown. Good until the next begin_window().
  const CpuSet* find(CgroupId id, const CgroupInventory& inventory);

 private:
  static constexpr Duration kHold = std::chrono::seconds(60);
  static constexpr int kFirstReads = 256, kLaterReads = 32;

  struct Entry {
    std::optional<CpuSet> cpus;
    Instant read_at;
  };

  std::filesystem::path cgroup_root_;
  std::unordered_map<std::uint64_t, Entry> entries_;
  Instant at_;
  int first_reads_left_ = 0, later_reads_left_ = 0;
};

class CpuWaitSource {
 public:
  CpuWaitSource(const std::filesystem::path& proc, std::filesystem::path cgroup_root);

  // After a sweep. Fills what `snapshot.waits` says of CPUs, and the signal cpu.pressure if a
  // window ended. Its cpu_use is filled then, and in a snapshot for a decision.
  void update(SnapshotScope scope, Instant at, const CgroupInventory& inventory, Snapshot& snapshot,
              std::optional<Observation>& pressure);

 private:
  CpuTimeReader times_;
  CpusetCache cpusets_;
  CpuWaitAccounts accounts_;
  MemoryWaitPairs memory_pairs_;
};

}  // namespace headroom::observe
