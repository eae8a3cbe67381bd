// SPDX-License-Identifier: Apache-2.0
#include "support/without_ptrace.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>

namespace headroom::test {
namespace {

bool give_up_ptrace() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2]{};
  if (::syscall(SYS_capget, &header, sets) != 0) return false;
  for (std::uint32_t* const set : {&sets[0].effective, &sets[0].permitted, &sets[0].inheritable})
    *set &= ~(std::uint32_t{1} << CAP_SYS_PTRACE);
  return ::syscall(SYS_capset, &header, sets) == 0;
}

}  // namespace

int check_without_ptrace(const std::function<bool()>& check) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (!give_up_ptrace()) ::_exit(2);
    ::_exit(check() ? 0 : 1);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 3;
  return WEXITSTATUS(status);
}

}  // namespace headroom::test
