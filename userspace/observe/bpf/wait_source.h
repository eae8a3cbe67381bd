// SPDX-License-Identifier: Apache-2.0
// WaitSource: whatever can say what cgroups have waited for.
#pragma once

#include <headroom/ports.h>
#include <headroom/waits.h>

#include <cstdint>

namespace headroom::observe {

class WaitSource {
 public:
  virtual ~WaitSource() = default;
  // The node's at any depth, the cgroups' not at Depth::kNode. What cannot be read stays
  // absent. Good until the next read.
  virtual Waits read(SnapshotScope depth) = 0;
  // Readings that failed, since the start.
  virtual std::uint64_t failed() const = 0;
};

}  // namespace headroom::observe
