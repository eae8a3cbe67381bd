// SPDX-License-Identifier: Apache-2.0
#include "act/exec/child_process.h"

#include <headroom/decision.h>

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace headroom::act {
namespace {

// What happens between fork() and exec(). Everything that needs memory is prepared before the fork:
// the child of a process with threads may only call functions that are safe in a signal handler.

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

struct ChildSetup {
  const Command* command = nullptr;
  std::vector<std::string> candidates;  // paths to try
  std::vector<char*> argv;
  std::vector<std::string> environment;  // of the target process
  std::vector<char*> envp;
  Fd target;     // pidfd
  Fd directory;  // the target's working directory
  Credentials credentials;
};

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

// "" if no security module labels processes.
std::string label_of(const std::string& process) {
  std::ifstream file("/proc/" + process + "/attr/current");
  std::string label;
  std::getline(file, label);
  return label;
}

// The uids in /proc are those of headroomd's user namespace, and changing a label may need a rule
// in the policy: a process that differs from headroomd in either is refused.
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

// The pid may have been reused by another process before the pidfd was opened.
bool is_in(int cgroup_procs, pid_t pid) {
  if (cgroup_procs < 0) return true;
  std::ifstream file(of_process(::getpid(), ("fd/" + std::to_string(cgroup_procs)).c_str()));
  for (pid_t member = 0; file >> member;)
    if (member == pid) return true;
  return false;
}

std::vector<std::string> candidate_paths(const std::string& program,
                                         const std::vector<std::string>& environment, bool target) {
  if (program.find('/') != std::string::npos) return {program};
  std::string path = kPath;
  if (!target && ::getenv("PATH")) path = ::getenv("PATH");
  for (const std::string& entry : environment)
    if (entry.starts_with("PATH=")) path = entry.substr(5);
  std::vector<std::string> paths;
  std::istringstream directories(path);
  for (std::string directory; std::getline(directories, directory, ':');)
    if (!directory.empty()) paths.push_back(directory + "/" + program);
  return paths;
}

Result<> inspect_target(const Command& command, ChildSetup& child_setup) {
  const pid_t pid = command.target;
  child_setup.target.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!child_setup.target) return errno_failure("hold the pod's process", errno);
  child_setup.directory.reset(
      ::open(of_process(pid, "cwd").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  auto credentials = credentials_of(pid);
  if (!credentials) return tl::make_unexpected(credentials.error());
  child_setup.credentials = std::move(*credentials);
  child_setup.environment = environment_of(pid);
  if (auto same = check_same_confinement(pid); !same) return same;
  // Checked last: if the process still exists, everything read under its pid was its own.
  if (!is_in(command.cgroup_procs, pid))
    return failure("find the pod's process in its cgroup", ESRCH);
  if (::syscall(SYS_pidfd_send_signal, child_setup.target.get(), 0, nullptr, 0) != 0)
    return errno_failure("hold the pod's process", errno);
  return {};
}

// --- in the child: no memory, no locks --------------------------------------------------------

[[noreturn]] void report_errno_and_exit(int report) {
  const int error = errno;
  if (::write(report, &error, sizeof error) < 0) ::_exit(126);
  ::_exit(127);
}

void reset_signals() {
  struct sigaction default_action {};
  default_action.sa_handler = SIG_DFL;
  ::sigaction(SIGPIPE, &default_action, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void lower_priority() {
  ::setpriority(PRIO_PROCESS, 0, 19);
  ::syscall(SYS_ioprio_set, 1, 0, 3 << 13);  // this process, idle class
}

void raise_oom_score() {
  const int score = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (score < 0) return;
  // headroomd's is -999 and would be inherited: the command must not be protected.
  if (::write(score, "500", 3) != 3) return;
}

void limit_data(std::uint64_t bytes) {
  if (bytes == 0) return;
  const rlimit limit{bytes, bytes};
  ::setrlimit(RLIMIT_DATA, &limit);
}

// setns() to a pid namespace applies to children only, so one more fork is needed; the process in
// between passes the exit status on.
void enter_namespaces(const ChildSetup& child_setup, int report) {
  // The cgroup namespace is left out: it only renames paths, and the child is in the cgroup
  // already.
  constexpr int kEntered = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWPID;
  if (::setns(child_setup.target.get(), kEntered) != 0) report_errno_and_exit(report);
  if (child_setup.directory && ::fchdir(child_setup.directory.get()) != 0)
    report_errno_and_exit(report);
  const pid_t inner = ::fork();
  if (inner < 0) report_errno_and_exit(report);
  if (inner == 0) return;
  ::close(report);
  int status = 0;
  while (::waitpid(inner, &status, 0) < 0 && errno == EINTR) {
  }
  ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

bool has_capability(std::uint64_t set, int capability) {
  return (set >> capability & 1) != 0;
}

void set_capabilities(const Credentials& credentials, int report) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2]{};
  if (::syscall(SYS_capget, &header, sets) != 0) report_errno_and_exit(report);
  // The unit bounds headroomd's own capabilities: the command cannot have more than those.
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

constexpr std::uint64_t set_of(int capability) {
  return std::uint64_t{1} << capability;
}

// A command of the operator removes containers and images, whose files belong to any user: it keeps
// the capabilities for files, and none of those with which headroomd kills, traces and loads BPF.
void limit_to_files(int report) {
  constexpr std::uint64_t kFiles = set_of(CAP_CHOWN) | set_of(CAP_DAC_OVERRIDE) |
                                   set_of(CAP_DAC_READ_SEARCH) | set_of(CAP_FOWNER);
  Credentials files;
  files.uid = ::geteuid();
  files.permitted = files.effective = kFiles;
  set_capabilities(files, report);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) report_errno_and_exit(report);
}

// The command gets at most the privileges of the process that it runs beside.
void set_credentials(const Credentials& credentials, int report) {
  // The bounding set is reduced first, while this process still has CAP_SETPCAP.
  for (int capability = 0; capability < 64; ++capability)
    if (!has_capability(credentials.bounding, capability) &&
        ::prctl(PR_CAPBSET_READ, capability, 0, 0, 0) == 1 &&
        ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0)
      report_errno_and_exit(report);
  if (::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0) report_errno_and_exit(report);  // until exec
  // System calls, not glibc's functions: those would signal threads that the child does not have.
  if (::syscall(SYS_setgroups, credentials.groups.size(), credentials.groups.data()) != 0 ||
      ::syscall(SYS_setresgid, credentials.gid, credentials.gid, credentials.gid) != 0 ||
      ::syscall(SYS_setresuid, credentials.uid, credentials.uid, credentials.uid) != 0)
    report_errno_and_exit(report);
  set_capabilities(credentials, report);
  // no_new_privs also prevents exec() from giving root all capabilities of its bounding set.
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) report_errno_and_exit(report);
}

Result<ChildSetup> prepare_child(const Command& command) {
  ChildSetup child_setup;
  child_setup.command = &command;
  if (command.target > 0)
    if (auto inspected = inspect_target(command, child_setup); !inspected)
      return tl::make_unexpected(inspected.error());
  child_setup.candidates =
      candidate_paths(command.argv[0], child_setup.environment, command.target > 0);
  for (const std::string& word : command.argv)
    child_setup.argv.push_back(const_cast<char*>(word.c_str()));
  child_setup.argv.push_back(nullptr);
  for (const std::string& entry : child_setup.environment)
    child_setup.envp.push_back(const_cast<char*>(entry.c_str()));
  child_setup.envp.push_back(nullptr);
  return child_setup;
}

// Runs in the child. Writes errno to `report` if the program cannot be started.
void exec_child(const ChildSetup& child_setup, int report) {
  const Command& command = *child_setup.command;
  ::setpgid(0, 0);
  // Every descriptor but the standard ones is closed by exec (Linux 5.11), also those that a
  // library opened without O_CLOEXEC.
  ::syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  reset_signals();
  ::umask(022);  // the usual value; headroomd's is stricter
  const int input = command.input >= 0 ? command.input : ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (input >= 0) ::dup2(input, STDIN_FILENO);
  raise_oom_score();
  if (command.in_background) lower_priority();
  limit_data(command.data_limit);
  if (command.cgroup_procs >= 0 && ::write(command.cgroup_procs, "0", 1) != 1)
    report_errno_and_exit(report);
  if (child_setup.target) {
    enter_namespaces(child_setup, report);
    set_credentials(child_setup.credentials, report);
  } else {
    limit_to_files(report);
  }
  char* const* environment = child_setup.target ? child_setup.envp.data() : environ;
  for (const std::string& path : child_setup.candidates)
    ::execve(path.c_str(), child_setup.argv.data(), environment);
  report_errno_and_exit(report);
}

constexpr int kPollMs = 100;  // how soon a stop request is noticed

struct Pipe {
  Fd read;
  Fd write;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_failure("make a pipe", errno);
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

// Nothing is read if the program has started: the pipe is closed on exec.
int read_child_errno(const Fd& read) {
  int error = 0;
  ssize_t n = 0;
  do
    n = ::read(read.get(), &error, sizeof error);
  while (n < 0 && errno == EINTR);
  return n == static_cast<ssize_t>(sizeof error) ? error : 0;
}

}  // namespace

Result<Child> Child::start(const Command& command) {
  if (command.argv.empty()) return failure("run a command: it is empty", EINVAL);
  auto child_setup = prepare_child(command);
  if (!child_setup) return tl::make_unexpected(child_setup.error());
  auto pipe = make_pipe();
  if (!pipe) return tl::make_unexpected(pipe.error());
  const pid_t pid = ::fork();
  if (pid < 0) return errno_failure("fork for " + command.argv[0], errno);
  if (pid == 0) exec_child(*child_setup, pipe->write.get());  // does not return
  pipe->write.reset(-1);
  Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  Child child(pid, std::move(pidfd));
  if (const int error = read_child_errno(pipe->read); error != 0)
    return errno_failure("run " + command.argv[0], error);  // ~Child() reaps the process
  return child;
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), pidfd_(std::move(other.pidfd_)) {}

Child::~Child() {
  if (pid_ == 0) return;
  kill();
  reap();
}

// Kills its process group, which has the processes that it started.
void Child::kill() {
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);
}

int Child::reap() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
  if (WIFEXITED(status))
    return WEXITSTATUS(status) == 0 ? 0 : Outcome::kExitStatus | WEXITSTATUS(status);
  return Outcome::kExitStatus | (128 + WTERMSIG(status));  // as in a shell's exit status
}

int Child::wait(Instant deadline, Instant (*clock)(), const std::stop_token& stop) {
  for (;;) {
    pollfd exited{.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&exited, 1, kPollMs) > 0) return reap();
    const bool late = clock() >= deadline;
    if (!late && !stop.stop_requested()) continue;
    kill();
    reap();
    return late ? ETIMEDOUT : ECANCELED;
  }
}

}  // namespace headroom::act
