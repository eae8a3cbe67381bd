// SPDX-License-Identifier: Apache-2.0
// LifecycleWatch: what happens to cgroups, as the kernel says it: born, emptied, gone, a process
// killed by its OOM killer, a process of ours exited. Read when the descriptor is ready.
#pragma once

#include "observe/bpf/bpf_loader.h"

#include <headroom/bpf/stall_abi.h>
#include <headroom/result.h>
#include <headroom/units.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

struct lifecycle_bpf;
struct ring_buffer;

namespace headroom::observe {

class LifecycleWatch {
 public:
  using OnEvent = std::function<void(const hr_event&)>;
  struct Options {
    std::int32_t hierarchy = 0;  // the unified one; else see stall_abi.h
    LogLine log = {};
  };

  // Each program observes one thing and can be missing; fails where nothing can be watched.
  static Result<std::unique_ptr<LifecycleWatch>> open(const Options& options);
  ~LifecycleWatch();
  LifecycleWatch(const LifecycleWatch&) = delete;
  LifecycleWatch& operator=(const LifecycleWatch&) = delete;

  // Readable when there are events; the watch's own.
  int descriptor() const;
  // Hands over what is there, on this thread; how many events. Never waits.
  std::size_t drain(const OnEvent& on_event);

  // Call it before the cgroup's processes are killed: their exits are then reported. Returns false,
  // and counts it, if too many cgroups are watched. Allocates nothing.
  bool watch_exits(CgroupId killed);
  void forget_exits(CgroupId killed);

  // Events that found no room in the ring.
  std::uint64_t lost() const;
  // Kills whose exits could not be watched.
  std::uint64_t unwatched() const { return unwatched_; }
  const std::vector<SkippedProgram>& skipped_programs() const { return skipped_programs_; }

 private:
  struct DestroyProgram {
    void operator()(lifecycle_bpf* program) const;
  };
  struct FreeRing {
    void operator()(ring_buffer* ring) const;
  };
  LifecycleWatch() = default;
  Result<> load(const Options& options);
  static int take(void* watch, void* event, std::size_t size);

  const OnEvent* on_event_ = nullptr;  // in drain()
  std::unique_ptr<lifecycle_bpf, DestroyProgram> program_;
  Links links_;
  std::unique_ptr<ring_buffer, FreeRing> ring_;
  std::vector<SkippedProgram> skipped_programs_;
  std::uint64_t unwatched_ = 0;
};

}  // namespace headroom::observe
