// SPDX-License-Identifier: Apache-2.0
// ProcessUsageMeter: the resources that the daemon itself uses, as the kernel counts them.
#pragma once

#include "base/fd.h"
#include "report/view/node_view.h"

namespace headroom::report {

class ProcessUsageMeter {
 public:
  ProcessUsageMeter();
  // Fills `cpu`, `resident` and `real_time`; a value that cannot be read is absent.
  void read(ProcessUsage& cost) const;

 private:
  Fd statm_;  // kept open: reading it is one system call
};

}  // namespace headroom::report
