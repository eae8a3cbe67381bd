// SPDX-License-Identifier: Apache-2.0
// A PSI trigger: a descriptor that is ready (EPOLLPRI) when tasks waited for as long as `stall`
// within a window, at most once a window (Documentation/accounting/psi.rst). It costs a kernel
// thread, so there are few: of the node and of all pods.
#pragma once

#include "base/file_io.h"

#include <headroom/result.h>

#include <chrono>
#include <filesystem>

namespace headroom::observe {

struct PsiTrigger {
  // Without CAP_SYS_RESOURCE a window must be a multiple of two seconds (since 6.5).
  std::chrono::microseconds window = std::chrono::seconds(2);
  std::chrono::microseconds stall = std::chrono::milliseconds(50);
};

// `file`: /proc/pressure/memory or a cgroup's memory.pressure. Fails where the kernel keeps no PSI
// (ENOENT, EOPNOTSUPP) or refuses the trigger (EINVAL).
Result<Fd> watch_pressure(const std::filesystem::path& file, PsiTrigger trigger = {});

}  // namespace headroom::observe
