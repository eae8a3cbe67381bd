// SPDX-License-Identifier: Apache-2.0
// KernelWaits: stalls and throttling as the BPF programs keep them, as far as they could be loaded.
#pragma once

#include "observe/bpf/wait_watch.h"

#include <headroom/ports.h>
#include <headroom/waits.h>

#include <cstdint>
#include <memory>

namespace headroom::observe {

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
      : stalls_(std::move(stalls)), throttles_(std::move(throttles)) {}

  Waits read(SnapshotScope depth) override;
  std::uint64_t failed() const override { return failed_; }

  const StallWatch* stalls() const { return stalls_.get(); }
  const ThrottleWatch* throttles() const { return throttles_.get(); }

 private:
  std::unique_ptr<StallWatch> stalls_;
  std::unique_ptr<ThrottleWatch> throttles_;
  std::uint64_t failed_ = 0;
};

}  // namespace headroom::observe
