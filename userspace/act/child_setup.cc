// SPDX-License-Identifier: Apache-2.0
#include "act/child_setup.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

namespace headroom::act {
namespace {

constexpr const char* kPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

std::string of_process(pid_t pid, const char* file) {
  return "/proc/" + std::to_string(pid) + "/" + file;
}

std::vector<std::string> environment_of(pid_t pid) {
  std::ifstream file(of_process(pid, "environ"));
  std::vector<std::string> all;
  for (std::string entry; std::getline(file, entry, '\0');)
    all.push_back(std::move(entry));
  return all;
}

// "Uid:\t0\t0\t0\t0": the effective one is the second.
Result<Credentials> credentials_of(pid_t pid) {
  std::ifstream file(of_process(pid, "status"));
  Credentials found;
  bool uid = false, gid = false;
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
  }
  if (!uid || !gid) return failure("read the credentials of the pod's process", ESRCH);
  return found;
}

std::vector<std::string> places_of(const std::string& program,
                                   const std::vector<std::string>& environment, bool beside) {
  if (program.find('/') != std::string::npos) return {program};
  std::string path = kPath;
  if (!beside && ::getenv("PATH")) path = ::getenv("PATH");
  for (const std::string& entry : environment)
    if (entry.starts_with("PATH=")) path = entry.substr(5);
  std::vector<std::string> places;
  std::istringstream directories(path);
  for (std::string directory; std::getline(directories, directory, ':');)
    if (!directory.empty()) places.push_back(directory + "/" + program);
  return places;
}

Result<> look_beside(pid_t pid, Prepared& prepared) {
  prepared.beside.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!prepared.beside) return errno_failure("hold the pod's process", errno);
  prepared.directory.reset(
      ::open(of_process(pid, "cwd").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  auto credentials = credentials_of(pid);
  if (!credentials) return tl::make_unexpected(credentials.error());
  prepared.credentials = std::move(*credentials);
  prepared.environment = environment_of(pid);
  return {};
}

// --- in the child: no memory, no locks --------------------------------------------------------

[[noreturn]] void give_up(int report) {
  const int error = errno;
  if (::write(report, &error, sizeof error) < 0) ::_exit(126);
  ::_exit(127);
}

void reset_signals() {
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  ::sigaction(SIGPIPE, &usual, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void step_back() {
  ::setpriority(PRIO_PROCESS, 0, 19);
  ::syscall(SYS_ioprio_set, 1, 0, 3 << 13);  // this process, idle class
}

void offer_to_oom_killer() {
  const int score = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (score < 0) return;
  // Ours is -999 and would be inherited: what we run is no guardian.
  if (::write(score, "500", 3) != 3) return;
}

void limit_data(std::uint64_t bytes) {
  if (bytes == 0) return;
  const rlimit limit{bytes, bytes};
  ::setrlimit(RLIMIT_DATA, &limit);
}

// The pid namespace holds for children alone, so one more fork; the one in between passes the end
// on.
void enter_namespaces(const Prepared& prepared, int report) {
  // Not the cgroup namespace, which only renames what it sees: the cgroup itself it is in already.
  constexpr int kEntered = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWPID;
  if (::setns(prepared.beside.get(), kEntered) != 0) give_up(report);
  if (prepared.directory && ::fchdir(prepared.directory.get()) != 0) give_up(report);
  const pid_t inner = ::fork();
  if (inner < 0) give_up(report);
  if (inner == 0) return;
  ::close(report);
  int status = 0;
  while (::waitpid(inner, &status, 0) < 0 && errno == EINTR) {
  }
  ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

void take_credentials(const Credentials& credentials, int report) {
  // The raw calls: glibc's would signal threads that are not there.
  if (::syscall(SYS_setgroups, credentials.groups.size(), credentials.groups.data()) != 0 ||
      ::syscall(SYS_setresgid, credentials.gid, credentials.gid, credentials.gid) != 0 ||
      ::syscall(SYS_setresuid, credentials.uid, credentials.uid, credentials.uid) != 0)
    give_up(report);
}

}  // namespace

Result<Prepared> prepare(const Command& command) {
  Prepared prepared;
  prepared.command = &command;
  if (command.beside > 0)
    if (auto looked = look_beside(command.beside, prepared); !looked)
      return tl::make_unexpected(looked.error());
  prepared.candidates = places_of(command.argv[0], prepared.environment, command.beside > 0);
  for (const std::string& word : command.argv)
    prepared.argv.push_back(const_cast<char*>(word.c_str()));
  prepared.argv.push_back(nullptr);
  for (const std::string& entry : prepared.environment)
    prepared.envp.push_back(const_cast<char*>(entry.c_str()));
  prepared.envp.push_back(nullptr);
  return prepared;
}

void become(const Prepared& prepared, int report) {
  const Command& command = *prepared.command;
  ::setpgid(0, 0);
  reset_signals();
  ::umask(022);  // the usual one: ours is narrower
  const int null = ::open("/dev/null", O_RDONLY);
  if (null >= 0) ::dup2(null, STDIN_FILENO);
  offer_to_oom_killer();
  if (command.in_background) step_back();
  limit_data(command.data_limit);
  if (command.cgroup_procs >= 0 && ::write(command.cgroup_procs, "0", 1) != 1) give_up(report);
  if (prepared.beside) {
    enter_namespaces(prepared, report);
    take_credentials(prepared.credentials, report);
  }
  char* const* environment = prepared.beside ? prepared.envp.data() : environ;
  for (const std::string& path : prepared.candidates)
    ::execve(path.c_str(), prepared.argv.data(), environment);
  give_up(report);
}

}  // namespace headroom::act
