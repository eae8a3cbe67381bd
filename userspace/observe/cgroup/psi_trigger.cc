// SPDX-License-Identifier: Apache-2.0
#include "observe/cgroup/psi_trigger.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace headroom::observe {

Result<Fd> watch_pressure(const std::filesystem::path& file, PsiTrigger trigger) {
  Fd fd(::open(file.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!fd) return errno_failure("open " + file.native(), errno);
  const std::string asked = "some " + std::to_string(trigger.stall.count()) + " " +
                            std::to_string(trigger.window.count());
  // The final null is part of what the kernel expects.
  if (::write(fd.get(), asked.c_str(), asked.size() + 1) < 0)
    return errno_failure("set a trigger on " + file.native(), errno);
  return fd;
}

}  // namespace headroom::observe
