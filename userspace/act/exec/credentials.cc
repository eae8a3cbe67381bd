// SPDX-License-Identifier: Apache-2.0
#include "act/exec/credentials.h"

#include <grp.h>
#include <linux/capability.h>
#include <linux/limits.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <utility>

namespace headroom::act {
namespace {

bool has_capability(std::uint64_t set, int capability) {
  return (set >> capability & 1) != 0;
}

constexpr std::uint64_t set_of(int capability) {
  return std::uint64_t{1} << capability;
}

// A command of the operator removes containers and images, whose files belong to any user: as root
// it keeps the capabilities for files, and none of those with which headroomd kills and loads BPF.
constexpr std::uint64_t kFileCapabilities =
    set_of(CAP_CHOWN) | set_of(CAP_DAC_OVERRIDE) | set_of(CAP_DAC_READ_SEARCH) | set_of(CAP_FOWNER);

// "" if no security module labels processes.
std::string label_of(const std::string& process) {
  std::ifstream file("/proc/" + process + "/attr/current");
  std::string label;
  std::getline(file, label);
  return label;
}

}  // namespace

std::string of_process(pid_t pid, const char* file) {
  return "/proc/" + std::to_string(pid) + "/" + file;
}

// "Uid:\t0\t0\t0\t0" has the real, effective, saved and filesystem uid.
Result<Credentials> credentials_of(pid_t pid) {
  std::ifstream file(of_process(pid, "status"));
  Credentials found;
  bool uid = false, gid = false;
  unsigned capability_sets = 0;
  int seccomp = -1;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    unsigned real = 0;
    words >> key;
    if (key == "Uid:") uid = static_cast<bool>(words >> real >> found.uid);
    if (key == "Gid:") gid = static_cast<bool>(words >> real >> found.gid);
    if (key == "Groups:")
      for (gid_t group = 0; words >> group;)
        found.groups.push_back(group);
    if (key == "Seccomp:") words >> seccomp;
    for (const auto& [name, set] :
         {std::pair("CapInh:", &found.inheritable), std::pair("CapPrm:", &found.permitted),
          std::pair("CapEff:", &found.effective), std::pair("CapBnd:", &found.bounding),
          std::pair("CapAmb:", &found.ambient)})
      if (key == name && words >> std::hex >> *set) ++capability_sets;
  }
  if (!uid || !gid || capability_sets != 5)
    return failure("read the credentials of the pod's process", ESRCH);
  if (seccomp > 0)
    return failure("run a command beside a process with a seccomp filter: it cannot be copied",
                   EOPNOTSUPP);
  return found;
}

// The uids in /proc are those of this process's user namespace, and changing a label may need a
// rule in the policy: a process that differs from this one in either is refused.
Result<> check_same_confinement(pid_t pid) {
  struct stat ours {
  }, theirs{};
  if (::stat("/proc/self/ns/user", &ours) != 0 ||
      ::stat(of_process(pid, "ns/user").c_str(), &theirs) != 0)
    return errno_failure("read the user namespace of the pod's process", errno);
  if (ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino)
    return failure("run a command beside a process in another user namespace", EOPNOTSUPP);
  if (label_of("self") != label_of(std::to_string(pid)))
    return failure("run a command beside a process with another security label", EOPNOTSUPP);
  return {};
}

Result<Credentials> credentials_of_user(const std::string& name) {
  Credentials user;
  user.uid = ::geteuid();
  user.gid = ::getegid();
  if (!name.empty()) {
    std::vector<char> text(16 * 1024);
    passwd entry{};
    passwd* found = nullptr;
    const int error = ::getpwnam_r(name.c_str(), &entry, text.data(), text.size(), &found);
    if (error != 0) return errno_failure("look for the user " + name, error);
    if (!found) return failure("run a command as " + name + ": there is no such user", ENOENT);
    user.uid = entry.pw_uid;
    user.gid = entry.pw_gid;
    int count = NGROUPS_MAX;
    user.groups.resize(static_cast<std::size_t>(count));
    if (::getgrouplist(name.c_str(), user.gid, user.groups.data(), &count) < 0)
      return failure("run a command as " + name + ": it is in too many groups", E2BIG);
    user.groups.resize(static_cast<std::size_t>(count));
  }
  if (user.uid == 0) user.permitted = user.effective = kFileCapabilities;
  return user;
}

[[noreturn]] void report_errno_and_exit(int report) {
  const int error = errno;
  if (::write(report, &error, sizeof error) < 0) ::_exit(126);
  ::_exit(127);
}

namespace {

void set_capabilities(const Credentials& credentials, int report) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2]{};
  if (::syscall(SYS_capget, &header, sets) != 0) report_errno_and_exit(report);
  // The unit bounds this process's own capabilities: the command cannot have more than those.
  const std::uint64_t ours = sets[0].permitted | static_cast<std::uint64_t>(sets[1].permitted)
                                                     << 32;
  // exec() makes all permitted capabilities of root effective: those not effective are dropped.
  const std::uint64_t permitted =
      ours & (credentials.uid == 0 ? credentials.effective : credentials.permitted);
  for (int word = 0; word < 2; ++word) {
    sets[word].effective =
        static_cast<std::uint32_t>((credentials.effective & permitted) >> (32 * word));
    sets[word].permitted = static_cast<std::uint32_t>(permitted >> (32 * word));
    sets[word].inheritable =
        static_cast<std::uint32_t>((credentials.inheritable & ours) >> (32 * word));
  }
  if (::syscall(SYS_capset, &header, sets) != 0) report_errno_and_exit(report);
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0)
    report_errno_and_exit(report);
  for (int capability = 0; capability < 64; ++capability)
    if (has_capability(credentials.ambient & credentials.inheritable & permitted, capability) &&
        ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0) != 0)
      report_errno_and_exit(report);
}

// System calls, not glibc's functions: those would signal threads that the child does not have.
void set_ids(const Credentials& credentials, int report) {
  if (::syscall(SYS_setgroups, credentials.groups.size(), credentials.groups.data()) != 0 ||
      ::syscall(SYS_setresgid, credentials.gid, credentials.gid, credentials.gid) != 0 ||
      ::syscall(SYS_setresuid, credentials.uid, credentials.uid, credentials.uid) != 0)
    report_errno_and_exit(report);
}

}  // namespace

void take_credentials(const Credentials& credentials, int report) {
  // The bounding set is reduced first, while this process still has CAP_SETPCAP.
  for (int capability = 0; capability < 64; ++capability)
    if (!has_capability(credentials.bounding, capability) &&
        ::prctl(PR_CAPBSET_READ, capability, 0, 0, 0) == 1 &&
        ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0)
      report_errno_and_exit(report);
  if (::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0) report_errno_and_exit(report);  // until exec
  set_ids(credentials, report);
  set_capabilities(credentials, report);
  // no_new_privs also prevents exec() from giving root all capabilities of its bounding set.
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) report_errno_and_exit(report);
}

void take_user(const Credentials& user, int report) {
  // The groups of a process that stays as it is need no capability.
  if (user.uid != ::geteuid() || user.gid != ::getegid()) set_ids(user, report);
  set_capabilities(user, report);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) report_errno_and_exit(report);
}

}  // namespace headroom::act
