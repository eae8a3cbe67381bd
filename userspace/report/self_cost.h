// SPDX-License-Identifier: Apache-2.0
// SelfCost: what the daemon itself uses, as the kernel counts it.
#pragma once

#include "base/fd.h"
#include "report/node_view.h"

namespace headroom::report {

class SelfMeter {
 public:
  SelfMeter();
  // Fills `cpu`, `resident` and `real_time`; what cannot be read is absent.
  void read(SelfCost& cost) const;

 private:
  Fd statm_;  // kept open: reading it is one system call
};

}  // namespace headroom::report
