// SPDX-License-Identifier: Apache-2.0
// Credentials: the user, groups and capabilities that a command runs with, and how the child of a
// fork() takes them.
#pragma once

#include <headroom/result.h>

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace headroom::act {

struct Credentials {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;
  // Capability sets, one bit each, as in /proc/PID/status.
  std::uint64_t inheritable = 0;
  std::uint64_t permitted = 0;
  std::uint64_t effective = 0;
  std::uint64_t bounding = 0;
  std::uint64_t ambient = 0;
};

// "/proc/PID/file"
std::string of_process(pid_t pid, const char* file);

// Those of a running process. EOPNOTSUPP: it has a seccomp filter, which cannot be copied.
Result<Credentials> credentials_of(pid_t pid);
// EOPNOTSUPP: the process is in another user namespace, or has another security label, than this
// one.
Result<> check_same_confinement(pid_t pid);
// Those that a command of the operator has as the user of that name; "": the user of this process.
// The user root keeps the capabilities for files, another user has none. ENOENT: there is no such
// user.
Result<Credentials> credentials_of_user(const std::string& name);

// --- in the child of a fork(): no memory, no locks ----------------------------------------------
// What fails ends the child.

// Writes errno to the pipe `report`.
[[noreturn]] void report_errno_and_exit(int report);
// At most the privileges of the process that `credentials` were read of. An exec() gives no more.
void take_credentials(const Credentials& credentials, int report);
// Those of credentials_of_user().
void take_user(const Credentials& user, int report);

}  // namespace headroom::act
