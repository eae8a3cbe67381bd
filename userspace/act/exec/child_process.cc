// SPDX-License-Identifier: Apache-2.0
#include "act/exec/child_process.h"

#include "act/exec/credentials.h"

#include <headroom/decision.h>

#include <fcntl.h>
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

struct ChildSetup {
  const Command* command = nullptr;
  std::vector<std::string> candidates;  // paths to try
  std::vector<char*> argv;
  std::vector<std::string> environment;  // of the target process
  std::vector<char*> envp;
  Fd target;                // pidfd
  Fd directory;             // the target's working directory
  Credentials credentials;  // of the target, or of the operator's user
};

constexpr const char* kPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

std::vector<std::string> environment_of(pid_t pid) {
  std::ifstream file(of_process(pid, "environ"));
  std::vector<std::string> all;
  for (std::string entry; std::getline(file, entry, '\0');)
    all.push_back(std::move(entry));
  return all;
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

// The caller's refusal would be inherited.
void allow_huge_pages() {
  ::prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
}

void raise_oom_score() {
  const int score = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (score < 0) return;
  // The caller's is low and would be inherited: the command must not be protected.
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

Result<ChildSetup> prepare_child(const Command& command) {
  ChildSetup child_setup;
  child_setup.command = &command;
  if (command.target > 0) {
    if (auto inspected = inspect_target(command, child_setup); !inspected)
      return tl::make_unexpected(inspected.error());
  } else {
    auto user = credentials_of_user(command.user);
    if (!user) return tl::make_unexpected(user.error());
    child_setup.credentials = std::move(*user);
  }
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
  ::umask(022);  // the usual value; the caller's may be stricter
  const int input = command.input >= 0 ? command.input : ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (input >= 0) ::dup2(input, STDIN_FILENO);
  raise_oom_score();
  allow_huge_pages();
  if (command.in_background) lower_priority();
  limit_data(command.data_limit);
  if (command.cgroup_procs >= 0 && ::write(command.cgroup_procs, "0", 1) != 1)
    report_errno_and_exit(report);
  if (child_setup.target) {
    enter_namespaces(child_setup, report);
    take_credentials(child_setup.credentials, report);
  } else {
    take_user(child_setup.credentials, report);
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
  return wait_unless([&stop] { return stop.stop_requested(); }, deadline, clock);
}

int Child::wait_unless(const std::function<bool()>& cancelled, Instant deadline,
                       Instant (*clock)()) {
  for (;;) {
    pollfd exited{.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&exited, 1, kPollMs) > 0) return reap();
    const bool late = clock() >= deadline;
    if (!late && !cancelled()) continue;
    kill();
    reap();
    return late ? ETIMEDOUT : ECANCELED;
  }
}

}  // namespace headroom::act
