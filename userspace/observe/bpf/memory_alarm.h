// SPDX-License-Identifier: Apache-2.0
// MemoryAlarm: watches the node's working set while the loop sleeps.
#pragma once

#include <headroom/units.h>

#include <cstdint>

namespace headroom::observe {

class MemoryAlarm {
 public:
  struct Pace {
    std::int64_t bytes_per_second = 0;  // how fast memory can fill; positive
    Duration floor{0};                  // bounds of the time between two looks
    Duration ceiling{0};
  };

  virtual ~MemoryAlarm() = default;
  // Wake us when the working set has grown by LEFT since now, once; instead of what was asked
  // before. False: it cannot. Allocates nothing.
  virtual bool arm(Bytes left, const Pace& pace) = 0;
  virtual void disarm() = 0;
  // How often it has looked, ever.
  virtual std::uint64_t checks() const = 0;
};

}  // namespace headroom::observe
