// SPDX-License-Identifier: Apache-2.0
// NodeSource: the node's eviction signals, computed as the kubelet computes them on cgroup v2
// (kubelet: stats), from descriptors kept open. O(1) in the number of cgroups.
#pragma once

#include "base/clock.h"
#include "base/file_io.h"
#include "observe/node/swap_source.h"

#include <headroom/bpf/abi.h>
#include <headroom/snapshot.h>
#include <headroom/units.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

namespace headroom::observe {

class NodeSource {
 public:
  struct Options {
    std::filesystem::path cgroup_root = "/sys/fs/cgroup";
    std::filesystem::path proc = "/proc";
    std::filesystem::path sys = "/sys";
    std::filesystem::path nodefs = "/";                 // any path on the filesystem
    std::optional<std::filesystem::path> imagefs = {};  // absent: no observation
    std::optional<std::filesystem::path> containerfs = {};
    // Preallocated huge pages cannot be used by other memory; the kubelet subtracts them since
    // 1.36.
    bool without_hugepages = true;
    Instant (*clock)() = now;
  };

  explicit NodeSource(const Options& options);

  // A reading that cannot be had leaves its observation nullopt. memory.available as the kubelet
  // computes it, and kernel.memAvailable without swap (headroom/signal.h).
  void read_memory(Observations& all);
  // The same, but the root cgroup's memory.stat is as the record has it, which was written at
  // `sampled`. Null, or a record that lacks what is needed: the file is read.
  void read_memory(Observations& all, const hr_record* root, Instant sampled);
  // After a sweep: the root's children, of these records at these positions, for the page cache
  // that memory.min keeps from reclaim. The next read_memory() counts it as used.
  void use_top_level(std::span<const hr_record> records, std::span<const std::uint32_t> positions);
  // As of the last read_memory(): Snapshot::unaccounted_memory.
  std::optional<Bytes> unaccounted() const { return unaccounted_; }
  void read_pids(Observations& all);
  // From the meminfo that read_memory() or memory_capacity() read last. Unknown where there is no
  // swap: none left and none at all are not the same. Not `at_once`: a reading of some milliseconds
  // ago will do (SwapSource::read()).
  void read_swap(Observations& all, bool at_once = false);
  // As of the last read_swap(); absent: no swap, or unknown.
  const std::optional<SwapReading>& swap() const { return swap_.latest(); }
  // SwapSource::watch_without_swap().
  void watch_without_swap(bool wanted) { swap_.watch_without_swap(wanted); }
  // statvfs(): does not return while a filesystem hangs. The loop uses filesystem_read().
  void read_filesystems(Observations& all) const;
  // The same, for a thread that may outlive this.
  std::function<void(Observations&)> filesystem_read() const;
  // From the pods' own cgroup (kubepods.slice), if it has a memory limit; null: no such cgroup.
  void read_allocatable(const hr_record* pods, Instant sampled, Observations& all) const;

  // All of the above.
  Observations read_all(const hr_record* pods = nullptr);

  // MemTotal. Read again at most every ten seconds: memory can be plugged and ballooned.
  std::optional<Bytes> memory_capacity();

 private:
  struct MemoryTotals {
    std::uint64_t total = 0;      // bytes
    std::uint64_t hugepages = 0;  // bytes, of all sizes
  };
  // Of the root cgroup, in bytes.
  struct RootMemory {
    std::uint64_t usage = 0, inactive_file = 0;
  };
  // Absent: the record lacks it, the file could not be read.
  static std::optional<RootMemory> root_memory(const hr_record& root);
  std::optional<RootMemory> read_root_memory();
  // Returns the beginning of meminfo, good until the next call.
  std::string_view read_meminfo(Instant at);
  std::string_view meminfo_text() const { return {meminfo_text_.data(), meminfo_length_}; }
  void refresh_max_pids(Instant at);
  void refresh_reserve();
  // Bytes; __setup_per_zone_wmarks() (mm/page_alloc.c) adds a quarter at least.
  std::uint64_t low_watermark() const { return min_free_kilobytes_.value_or(0) * 1280; }
  Observation available(const RootMemory& memory, Instant at) const;

  Options options_;
  Fd memory_stat_;
  Fd meminfo_;
  Fd min_free_;
  Fd loadavg_;
  Fd pid_max_;
  Fd threads_max_;
  std::array<char, 4096> meminfo_text_;
  std::size_t meminfo_length_ = 0;  // of meminfo_text_; 0: it could not be read
  std::optional<MemoryTotals> totals_;
  Instant totals_at_{};
  std::optional<Bytes> unaccounted_;
  std::optional<std::uint64_t> min_free_kilobytes_;
  std::optional<std::uint64_t> reserve_;   // bytes of free memory that no process can have
  std::uint64_t reserve_of_ = 0;           // MemTotal when it was read, in bytes
  std::uint64_t kept_cache_ = 0;           // bytes of page cache that memory.min keeps
  std::optional<std::uint64_t> max_pids_;  // tasks there may be
  Instant max_pids_read_at_{};
  SwapSource swap_;
};

}  // namespace headroom::observe
