// SPDX-License-Identifier: Apache-2.0
// WaitWatch: a BPF program that records what cgroups wait for, and its readings: the node's through
// a mapping, the cgroups' in one batch, so that neither costs a system call per cgroup, and none at
// all while nothing waits.
#pragma once

#include "observe/bpf/bpf_loader.h"

#include <headroom/ports.h>
#include <headroom/result.h>
#include <headroom/waits.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace headroom::observe {

struct WaitOptions {
  std::uint32_t capacity = 8192;        // cgroups that can have waited at a time,
  std::uint32_t more_capacity = 65536;  // and those whose entries are allocated when they wait
  std::int32_t hierarchy = 0;           // the unified one; else see stall_abi.h
  bool reclaim_only = false;            // as where functions cannot be hooked: stalls only
  LogLine log = {};
};

template <class Value>
class WaitWatch {
 public:
  // What the factories below fill in.
  struct Parts {
    std::shared_ptr<void> program;  // the skeleton
    Links links;
    std::vector<SkippedProgram> skipped_programs;
    std::array<int, 2> maps{-1, -1};  // the program's
    std::uint32_t capacity = 0;       // of both
    bool complete = true;
    const Value* node = nullptr;  // mapped, as are:
    const std::uint64_t* removed_cgroups = nullptr;
    const hr_losses* losses = nullptr;
    std::uint64_t* memory_nodes = nullptr;  // null: the program does not ask for them
  };
  explicit WaitWatch(Parts parts) : parts_(std::move(parts)) {}
  WaitWatch(const WaitWatch&) = delete;
  WaitWatch& operator=(const WaitWatch&) = delete;
  ~WaitWatch() { parts_.links.clear(); }  // before the maps they write to

  // Every cgroup that has waited. Good until the next read; allocates only to grow. A few loads
  // where no wait has ended since the last one, and no cgroup that had waited is gone.
  Result<ByCgroup<Value>> read();
  // All together, as of now, for no more than a look into memory.
  const Value& node() const { return *parts_.node; }
  // Waits that were not charged because the map was full.
  std::uint64_t lost() const { return parts_.losses->map; }
  // Programs that are not at work, and what the others observe instead.
  const std::vector<SkippedProgram>& skipped_programs() const { return parts_.skipped_programs; }
  void note(SkippedProgram skipped_programs) {
    parts_.skipped_programs.push_back(std::move(skipped_programs));
  }
  // The NUMA nodes that have memory, as bits: reclaim of a task that may not use all of them is not
  // the node's shortage.
  void set_memory_nodes(std::uint64_t nodes) {
    if (parts_.memory_nodes) *parts_.memory_nodes = nodes;
  }
  // Every wait is seen; else only those in reclaim (hr_stall_brackets).
  bool complete() const { return parts_.complete; }

 private:
  // What moves whenever the map does, and after it.
  struct Sum {
    Value node;
    std::uint64_t removed_cgroups;
  };
  Sum sum() const { return {*parts_.node, *parts_.removed_cgroups}; }
  Result<std::size_t> read_map(int map, std::size_t got);

  Parts parts_;
  std::optional<Sum> read_at_;  // as it stood before the map was read
  std::size_t got_ = 0;         // of both:
  std::vector<std::uint64_t> ids_;
  std::vector<Value> values_;
};

extern template class WaitWatch<hr_stalls>;
extern template class WaitWatch<hr_throttles>;
using StallWatch = WaitWatch<hr_stalls>;
using ThrottleWatch = WaitWatch<hr_throttles>;

// Fails where the kernel has no BTF, lacks a hook the observation needs, or refuses the program.
// Stalls are then seen through reclaim's tracepoints alone, if these can be had.
Result<std::unique_ptr<StallWatch>> watch_stalls(const WaitOptions& options);
Result<std::unique_ptr<ThrottleWatch>> watch_throttles(const WaitOptions& options);

// KernelWaits: stalls and throttling as the BPF programs keep them, as far as they could be loaded.

// WaitSource: whatever can say what cgroups have waited for.

class WaitSource {
 public:
  virtual ~WaitSource() = default;
  // The node's at any depth, the cgroups' not at Depth::kNode. What cannot be read stays
  // absent. Good until the next read.
  virtual Waits read(SnapshotScope depth) = 0;
  // Readings that failed, since the start.
  virtual std::uint64_t failed() const = 0;
};

class KernelWaits final : public WaitSource {
 public:
  // Either may be null: then that is not watched.
  KernelWaits(std::unique_ptr<StallWatch> stalls, std::unique_ptr<ThrottleWatch> throttles)
      : stalls_(std::move(stalls)), throttles_(std::move(throttles)) {
    update_memory_nodes();
  }

  Waits read(SnapshotScope depth) override;
  std::uint64_t failed() const override { return failed_; }

  const StallWatch* stalls() const { return stalls_.get(); }
  const ThrottleWatch* throttles() const { return throttles_.get(); }

 private:
  // Memory may be plugged in and out.
  void update_memory_nodes();
  static constexpr std::uint32_t kReadsPerUpdate = 16;

  std::unique_ptr<StallWatch> stalls_;
  std::unique_ptr<ThrottleWatch> throttles_;
  std::uint64_t failed_ = 0;
  std::uint32_t reads_ = 0;  // of all cgroups
};

}  // namespace headroom::observe
