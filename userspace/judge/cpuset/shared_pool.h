// SPDX-License-Identifier: Apache-2.0
// SharedPool: what the pods without CPUs of their own have together, against what they requested.
#pragma once

#include <headroom/units.h>

namespace headroom {

struct SharedPool {
  MilliCpu size{};       // without what is reserved
  MilliCpu requested{};  // by the pods in it
  bool is_short() const { return requested > size; }
  friend bool operator==(const SharedPool&, const SharedPool&) = default;
};

// What is asked of the pool beside the pods at hand.
struct SharedPoolOptions {
  MilliCpu requested{};  // by pods that are not among them
  bool guarded = false;
};

}  // namespace headroom
