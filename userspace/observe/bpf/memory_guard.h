// SPDX-License-Identifier: Apache-2.0
// MemoryGuard: a timer in the kernel that looks at the node's memory between our own looks, and
// wakes us when as much as was left has been used: when the working set has grown, or what is
// available has fallen, by that amount.
//
// It only brings a look forward: memory that fills faster than we believed possible (huge pages do)
// is seen within the guard's floor, at some ten loads a look and no wakeup.
#pragma once

#include "observe/bpf/bpf_loader.h"

#include <headroom/bpf/guard_abi.h>
#include <headroom/result.h>
#include <headroom/units.h>

#include <cstdint>
#include <filesystem>
#include <memory>

namespace headroom::observe {

// MemoryAlarm: watches the node's memory while the loop sleeps.

class MemoryAlarm {
 public:
  struct Pace {
    std::int64_t bytes_per_second = 0;  // how fast memory can fill; positive
    Duration floor{0};                  // bounds of the time between two looks
    Duration ceiling{0};
  };

  // What it saw last.
  struct Look {
    Instant at;
    Bytes working_set;  // of all NUMA nodes
    Bytes available{};  // free, page cache and reclaimable slab, of all NUMA nodes
  };

  virtual ~MemoryAlarm() = default;
  // Wake us when LEFT has been used since now, once; instead of what was asked
  // before. False: it cannot. Allocates nothing.
  virtual bool arm(Bytes left, const Pace& pace) = 0;
  virtual void disarm() = 0;
  // How often it has looked, ever.
  virtual std::uint64_t checks() const = 0;
  // The latest look, arm()'s own included.
  virtual Look latest_look() const = 0;
};

}  // namespace headroom::observe

struct guard_bpf;
struct ring_buffer;

namespace headroom::observe {

class MemoryGuard final : public MemoryAlarm {
 public:
  struct Options {
    std::filesystem::path sys = "/sys";
    LogLine log = {};
  };
  // Fails where the kernel has no such timer (before 5.15), or will not have this program.
  static Result<std::unique_ptr<MemoryGuard>> open(const Options& options);
  ~MemoryGuard() override;
  MemoryGuard(const MemoryGuard&) = delete;
  MemoryGuard& operator=(const MemoryGuard&) = delete;

  bool arm(Bytes left, const Pace& pace) override;
  void disarm() override;
  std::uint64_t checks() const override;
  Look latest_look() const override;
  // The NUMA nodes that it adds up, as of the latest arm().
  std::uint64_t nodes() const;

  // Readable when it has woken us; the guard's own.
  int descriptor() const;
  // Takes what it said; how often it woke. Never waits.
  std::size_t drain();

  // Since it was opened.
  std::uint64_t wakeups() const;
  std::uint64_t lost() const;                                   // wakes that found no room
  std::uint64_t arm_failures() const { return arm_failures_; }  // orders the kernel refused

 private:
  struct DestroyProgram {
    void operator()(guard_bpf* program) const;
  };
  struct FreeRing {
    void operator()(ring_buffer* ring) const;
  };
  MemoryGuard() = default;
  Result<> load(const Options& options);
  Result<> request(std::uint64_t pages, const Pace& pace);

  std::unique_ptr<guard_bpf, DestroyProgram> program_;
  std::unique_ptr<ring_buffer, FreeRing> ring_;
  std::uint64_t page_size_ = 4096;
  std::uint64_t arm_failures_ = 0;
};

}  // namespace headroom::observe
