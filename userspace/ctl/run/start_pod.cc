// SPDX-License-Identifier: Apache-2.0
#include "ctl/run/start_pod.h"

#include "act/limits/limit_lowering.h"
#include "act/units/dbus_unit_manager.h"
#include "act/units/unit_properties.h"
#include "base/file_io.h"
#include "ctl/common/dbus_client.h"
#include "ctl/common/print_error.h"
#include "ctl/common/status_document.h"

#include <headroom/result.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <spdlog/fmt/fmt.h>

namespace headroom::ctl {
namespace {

using Role = Program::Role;
using Arguments = std::vector<std::string>;

std::string exec_stop_post(const std::string& command) {
  return "--property=ExecStopPost=-" + command;
}

// Only the manifest's path is quoted: the slice's name has only letters, digits, dots and dashes.
void add_cleanup_of_single_container(const PodUnits& pod, Arguments& arguments) {
  arguments.push_back(exec_stop_post("/bin/rm -f \"" + pod.manifest.native() + "\""));
  arguments.push_back(exec_stop_post("/bin/systemctl --no-block stop " + pod.slice));
}

// headroomctl holds the manifest locked while it starts the pod. The cleanup of a main container
// waits for the lock. An init container leaves the cleanup to headroomctl, which waits for it,
// unless headroomctl is gone.
constexpr const char* kAfterStart = "if [ -e \"$$0\" ]; then flock \"$$0\" true; fi";
constexpr const char* kUnlessStarting = "flock --nonblock \"$$0\" true || exit 0";

// A dollar sign is doubled so that the shell expands it, not systemd.
void add_cleanup_after_last_container(const ContainerToStart& unit,
                                      const std::vector<Program>& programs, Arguments& arguments) {
  std::string units;
  for (std::size_t i = 0; i < programs.size(); ++i)
    if (programs[i].role == Role::kMain) units += " " + unit.pod_units.containers[i].unit;
  arguments.push_back(exec_stop_post(
      fmt::format("/bin/sh -c '{}; systemctl --quiet is-active{} || {{ rm -f \"$$0\"; systemctl "
                  "--no-block stop {}; }}' \"{}\"",
                  unit.program.role == Role::kInit ? kUnlessStarting : kAfterStart, units,
                  unit.pod_units.slice, unit.pod_units.manifest.native())));
}

void add_cleanup(const ContainerToStart& unit, const std::vector<Program>& programs,
                 Arguments& arguments) {
  if (programs.size() == 1) return add_cleanup_of_single_container(unit.pod_units, arguments);
  if (unit.program.role != Role::kSidecar)
    add_cleanup_after_last_container(unit, programs, arguments);
}

void add_program(const Program& program, Arguments& arguments) {
  for (const auto& [name, value] : program.environment)
    arguments.push_back("--setenv=" + name + "=" + value);
  if (!program.directory.empty()) arguments.push_back("--working-directory=" + program.directory);
  arguments.emplace_back("--");
  arguments.insert(arguments.end(), program.command.begin(), program.command.end());
}

}  // namespace

Arguments systemd_run_command(const ContainerToStart& unit, const std::vector<Program>& programs,
                              Streams streams) {
  const auto& [pod, pod_units, container, program] = unit;
  Arguments arguments{"systemd-run",
                      "--quiet",
                      "--collect",
                      "--unit=" + container.unit,
                      "--slice=" + pod_units.slice,
                      "--description=pod " + pod.pod_namespace + "/" + pod.name,
                      fmt::format("--property=OOMScoreAdjust={}", container.oom_score_adj)};
  // Like a container: SIGTERM goes to the first process, and when it ends the others are killed.
  arguments.emplace_back("--property=KillMode=mixed");
  if (pod.termination_grace)
    arguments.push_back(
        fmt::format("--property=TimeoutStopSec={}", pod.termination_grace->count()));
  if (program.role == Role::kSidecar) arguments.emplace_back("--property=Restart=always");
  for (const std::string& value : act::unit_assignments(container.values))
    arguments.push_back("--property=" + value);
  add_cleanup(unit, programs, arguments);
  if (streams != Streams::kNone) {
    arguments.emplace_back("--wait");
    arguments.emplace_back(streams == Streams::kTerminal ? "--pty" : "--pipe");
  }
  add_program(program, arguments);
  return arguments;
}

namespace {

// Child processes that headroomctl starts and waits for. It forwards terminating signals to them.

// The maximum number of children at one time.
inline constexpr std::size_t kMaxChildren = 64;

// The signal handler reads this; 0: unused entry.
std::array<std::atomic<pid_t>, kMaxChildren> running_children{};

void forward_signal(int signal) {
  for (const auto& child : running_children)
    if (const pid_t id = child.load(); id > 0) ::kill(id, signal);
}

bool add_running_child(pid_t child) {
  for (auto& slot : running_children)
    if (pid_t empty = 0; slot.compare_exchange_strong(empty, child)) return true;
  return false;
}

void remove_running_child(pid_t child) {
  for (auto& slot : running_children) {
    pid_t expected = child;
    if (slot.compare_exchange_strong(expected, 0)) return;
  }
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  remove_running_child(child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// From now on SIGTERM and SIGHUP are forwarded to the children. The terminal itself sends SIGINT
// (^C) to them.
void forward_signals() {
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, &forward_signal);
  std::signal(SIGHUP, &forward_signal);
}

Result<pid_t> spawn(const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments)
    argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return errno_failure("fork", errno);
  if (child == 0) {
    std::signal(SIGINT, SIG_DFL);
    ::execvp(argv[0], argv.data());
    std::fprintf(stderr, "headroomctl: run %s: %s\n", argv[0], std::strerror(errno));
    ::_exit(127);
  }
  if (add_running_child(child)) return child;
  ::kill(child, SIGTERM);
  wait_for(child);
  return failure("run " + arguments.front() + ": too many child processes");
}

// Waits for all children. Returns the first status that is not 0, else 0: an exit status, or 128
// plus the signal that ended the child.
int wait_for(const std::vector<pid_t>& children) {
  int first = 0;
  for (const pid_t child : children)
    if (const int status = wait_for(child); first == 0) first = status;
  return first;
}

using Role = Program::Role;

// headroomd reads a new manifest within a tenth of a second; without BPF it finds new cgroups once
// per sweep.
constexpr std::chrono::seconds kListTimeout{5};

// Only one pod at a time can have a name: the pod whose file is created first. The file stays
// locked until all containers were started.
Result<Fd> write_manifest(const std::filesystem::path& path, const std::string& text) {
  const std::filesystem::path temporary = path.native() + "." + std::to_string(::getpid());
  Fd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file) return errno_failure("create " + temporary.native(), errno);
  int code = write_all(file.get(), text);
  if (code == 0 && ::flock(file.get(), LOCK_EX) != 0) code = errno;
  if (code == 0 && ::link(temporary.c_str(), path.c_str()) != 0) code = errno;
  ::unlink(temporary.c_str());
  if (code == 0) return file;
  if (code == EEXIST)
    return failure(path.native() +
                   " exists: a pod of this name is already running, see headroomctl list and stop");
  return errno_failure("write " + path.native(), code);
}

// systemd answers before the cgroup of the slice exists.
Fd wait_for_cgroup(const std::filesystem::path& cgroup) {
  for (int tries = 0; tries < 400; ++tries) {
    if (Fd directory(::open(cgroup.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)); directory)
      return directory;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return {};
}

// Writes the settings for which systemd has no property, if the kernel supports them.
Result<> write_other_values(const PodToStart& start) {
  const CgroupValues rest = act::without_systemd_property(start.pod_units.values);
  if (rest.empty()) return {};
  const Fd directory = wait_for_cgroup(start.cgroups / start.pod_units.path.substr(1));
  if (!directory) return {};
  for (const CgroupSetting& setting : cgroup_settings(rest)) {
    if (::faccessat(directory.get(), setting.file.c_str(), F_OK, 0) != 0) continue;
    if (auto written = write_setting_at(directory.get(), setting.file, setting.value); !written)
      return written;
  }
  return {};
}

class PodStarter {
 public:
  PodStarter(const PodToStart& start, Streams streams) : start_(start), streams_(streams) {}

  // 0, or the exit status of the container that failed.
  int run() {
    forward_signals();
    for (std::size_t i = 0; i < start_.programs.size(); ++i)
      if (const int status = container(i); status != 0) return status;
    return 0;
  }
  std::vector<pid_t> take_main_pids() { return std::move(main_pids_); }

 private:
  int container(std::size_t index) {
    const Program& program = start_.programs[index];
    const auto child = spawn(systemd_run_command(
        {start_.pod, start_.pod_units, start_.pod_units.containers[index], program},
        start_.programs, streams_of(program.role)));
    if (!child) return print_error(child.error());
    if (program.role == Role::kMain && streams_ != Streams::kNone) {
      main_pids_.push_back(*child);
      return 0;
    }
    return wait_for(*child);
  }

  // headroomctl always waits for an init container, and never for a sidecar.
  Streams streams_of(Role role) const {
    if (role == Role::kSidecar) return Streams::kNone;
    if (role == Role::kInit && streams_ == Streams::kNone) return Streams::kPipes;
    return streams_;
  }

  const PodToStart& start_;
  const Streams streams_;
  std::vector<pid_t> main_pids_;
};

// Usually the units have already cleaned up. This is for a start that failed before there were
// units, and for a systemd-run that ended before its unit.
void clean_up(const PodUnits& pod_units) {
  for (const ContainerUnit& container : pod_units.containers)
    static_cast<void>(act::stop_unit(container.unit));
  static_cast<void>(act::stop_unit(pod_units.slice));
  ::unlink(pod_units.manifest.c_str());
}

int start_containers(const PodToStart& start, Fd manifest, Streams streams, Fd admission) {
  const PodUnits& pod_units = start.pod_units;
  if (auto made =
          act::start_transient_slice(pod_units.slice, act::unit_properties(pod_units.values));
      !made)
    return print_error(made.error());
  if (auto written = write_other_values(start); !written) return print_error(written.error());
  if (!wait_until_listed(start.pod, &fetch_status, kListTimeout))
    std::fprintf(stderr,
                 "headroomctl: headroomd does not list the pod after %lld s; "
                 "the admission of the next pod may not count it\n",
                 static_cast<long long>(kListTimeout.count()));
  admission.reset();  // unlocked: an init container may run for hours
  PodStarter starter(start, streams);
  const int status = starter.run();
  manifest.reset();  // unlocked
  const int ended = ctl::wait_for(starter.take_main_pids());
  return status != 0 ? status : ended;
}

}  // namespace

bool wait_until_listed(const Pod& pod, const FetchStatus& fetch,
                       std::chrono::milliseconds timeout) {
  constexpr std::chrono::milliseconds kPollPeriod(25);
  const auto until = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    const auto document = fetch();
    const auto status = document ? parse_status(*document) : Result<Status>(Status{});
    if (status)
      for (const PodStatus& listed : status->pods)
        if (listed.uid == pod.uid && listed.name == pod.name) return true;
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(kPollPeriod);
  }
}

Result<Fd> lock_admission(const std::filesystem::path& file) {
  Fd lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock) return errno_failure("open " + file.native(), errno);
  while (::flock(lock.get(), LOCK_EX) != 0)
    if (errno != EINTR) return errno_failure("lock " + file.native(), errno);
  return lock;
}

int start_pod(const PodToStart& start, Streams streams, Fd admission) {
  auto manifest = write_manifest(start.pod_units.manifest, start.manifest);
  if (!manifest) return print_error(manifest.error());
  const int status = start_containers(start, std::move(*manifest), streams, std::move(admission));
  if (streams != Streams::kNone || status != 0) clean_up(start.pod_units);
  return status;
}

}  // namespace headroom::ctl
