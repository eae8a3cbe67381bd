// SPDX-License-Identifier: Apache-2.0
// CgroupSource: whatever can say what every cgroup is at this instant. One record each, the same
// shape and units whether BPF or cgroupfs files filled it.
#pragma once

#include <headroom/cgroup_record.h>
#include <headroom/result.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::observe {

// CgroupRoot: where this host keeps cgroup v2, and whether headroom can work there.

struct CgroupRoot {
  std::filesystem::path mount;           // of cgroup2; empty if there is none
  bool unified = false;                  // no controller is held by a cgroup v1 hierarchy
  std::vector<std::string> controllers;  // the root's cgroup.controllers
  std::string unsupported_reason;        // one line: why headroom cannot work; empty if it can

  bool has(std::string_view controller) const;
};

// Reads a mountinfo(5) and the root's cgroup.controllers. Of several cgroup2 mounts it takes
// /sys/fs/cgroup, else /sys/fs/cgroup/unified (systemd's hybrid layout), else the first.
CgroupRoot find_cgroup_root(const std::filesystem::path& mountinfo = "/proc/self/mountinfo");

// "memory_usage, psi"; "none" for no bit at all.
std::string group_list(std::uint32_t groups);

class CgroupSource {
 public:
  virtual ~CgroupSource() = default;

  // Reads every cgroup now, parents before their children. The records stay good until the next
  // sweep(). Allocates nothing once the tree has been seen.
  virtual Result<std::span<const hr_record>> sweep() = 0;

  // What the last sweep() did with each record, and which it was; empty: it wrote them all.
  struct ChangeStamps {
    std::span<const hr_change_stamp> of_records;
    std::uint32_t pass = 0;
  };
  virtual ChangeStamps change_stamps() const { return {}; }
  // Groups that the source fills, but not in every record of the last sweep().
  virtual std::uint32_t partial_groups() const { return 0; }
  // The last sweep() found the cgroups of the one before, in the same order.
  virtual bool same_cgroups() const { return false; }
  // From now on no cgroup is skipped if a value that ranking uses has changed, and no file is read
  // for io, which ranking does not use. On at first, unless the source says otherwise.
  virtual void set_compare_usage(bool) {}
  // From now on a pass waits for nothing that a decision can do without: CPU time and io are as of
  // the kernel's last flush, at most two seconds old. Off at first.
  virtual void set_urgent(bool) {}
  // Brings the memory statistics of all cgroups up to date, which reading memory.stat does only
  // once many changes have come together. False: this source or this kernel cannot.
  virtual bool flush_memory() { return false; }
  // Whether flush_memory() can.
  virtual bool flushes_memory() const { return false; }
  // The root's memory.stat as of the last flush_memory(); null: read the file.
  virtual const hr_record* flushed_root() const { return nullptr; }

  virtual std::uint32_t groups() const = 0;   // hr_group bits this source tries to fill
  virtual std::string_view name() const = 0;  // "bpf", "files" or "hybrid"
  // cgroups left out because the buffer was full, since open
  virtual std::uint64_t lost() const = 0;
};

}  // namespace headroom::observe
