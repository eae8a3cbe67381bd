// SPDX-License-Identifier: Apache-2.0
// Commands that headroom-commands runs for headroomd: a real socket, real processes, and where the
// host allows it real cgroups and namespaces.
#include "act/exec/command_message.h"
#include "act/exec/command_starter.h"
#include "act/exec/pre_stop.h"
#include "config/temp_dir.h"
#include "support/command_servers.h"
#include "support/reduced_process.h"
#include "support/test_cgroup.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>

namespace headroom::act {
namespace {

using test::clock_now;
using test::Commands;
using test::ConfinedCommands;
using test::listen_at;
using test::privileges_in;
using test::Reduced;
using test::TempDir;
using test::TestCgroup;
using test::text_of;
using test::writable_cgroup2;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

int run(const std::string& socket, const Command& command, Duration within = 20s,
        const std::stop_token& stop = {}) {
  auto running = start_command(command, socket, within);
  return running ? running->wait(clock_now() + within, &clock_now, stop) : running.error().code;
}

bool ends_soon(pid_t pid) {
  for (int i = 0; i < 200; ++i) {
    const std::string stat = text_of("/proc/" + std::to_string(pid) + "/stat");
    if (stat.empty() || stat.find(") Z") != std::string::npos) return true;
    std::this_thread::sleep_for(20ms);
  }
  return false;
}

// A command whose child outlives it unless both are killed; the child's pid is in `file`.
Command with_child(const fs::path& file) {
  return {.argv = {"/bin/sh", "-c", "sleep 300 & echo $! > " + file.string() + "; wait"}};
}

pid_t written_pid(const fs::path& file) {
  pid_t pid = 0;
  for (int i = 0; i < 500 && pid == 0; ++i) {
    std::istringstream(text_of(file)) >> pid;
    std::this_thread::sleep_for(10ms);
  }
  return pid;
}

class CommandsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root may ask for commands";
  }
};

TEST_F(CommandsTest, ReturnTheirResult) {
  const Commands commands;
  EXPECT_EQ(run(commands.path(), {.argv = {"/bin/true"}}), 0);
  EXPECT_EQ(run(commands.path(), {.argv = {"/bin/sh", "-c", "exit 3"}}), Outcome::kExitStatus | 3);
  EXPECT_EQ(run(commands.path(), {.argv = {"/bin/sh", "-c", "kill -9 $$"}}),
            Outcome::kExitStatus | 137);
  EXPECT_EQ(run(commands.path(), {.argv = {"/no/such/program"}}), ENOENT);
  EXPECT_EQ(run(commands.path(), {.argv = {"true"}}), 0) << "looked for in PATH";
  EXPECT_EQ(run(commands.path(), {.argv = {"/bin/sh", "-c", "[ \"$1\" = 'a b' ] && [ -z \"$2\" ]",
                                           "sh", "a b", ""}}),
            0)
      << "words arrive as they are";
}

TEST_F(CommandsTest, AreKilledWithTheirChildrenAtTheDeadline) {
  const Commands commands;
  const fs::path pid = commands.directory() / "pid";
  EXPECT_EQ(run(commands.path(), with_child(pid), 700ms), ETIMEDOUT);
  EXPECT_TRUE(ends_soon(written_pid(pid)));
}

TEST_F(CommandsTest, AreKilledWhenTheyAreNoLongerWanted) {
  const Commands commands;
  const fs::path stopped = commands.directory() / "stopped",
                 dropped = commands.directory() / "drop";
  std::stop_source stop;
  std::jthread stopper([&] {
    written_pid(stopped);
    stop.request_stop();
  });
  EXPECT_EQ(run(commands.path(), with_child(stopped), 20s, stop.get_token()), ECANCELED);
  EXPECT_TRUE(ends_soon(written_pid(stopped)));
  {
    auto running = start_command(with_child(dropped), commands.path(), 20s);
    ASSERT_TRUE(running) << running.error().what;
    written_pid(dropped);
  }
  EXPECT_TRUE(ends_soon(written_pid(dropped)));
}

// A connection that headroomd has left behind, without a word.
Fd leave_behind(const std::string& path, const Command& command, Duration time_limit) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  Fd connection(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  EXPECT_EQ(
      ::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_TRUE(send_request(connection.get(), command, time_limit));
  return connection;
}

TEST_F(CommandsTest, OfTheOperatorEndWithHeadroomd) {
  const Commands commands;
  const fs::path file = commands.directory() / "pid";
  pid_t pid = 0;
  {
    const Fd connection = leave_behind(commands.path(), with_child(file), 60s);
    pid = written_pid(file);
    EXPECT_EQ(::kill(pid, 0), 0);
  }
  EXPECT_TRUE(ends_soon(pid));
}

bool has_line(const std::string& text, const std::string& line) {
  return text.find(line + "\n") != std::string::npos;
}

constexpr const char* kOther = "nobody";  // the user 65534 check: allow-word

// Those of a command of the operator; user "": none is named.
std::string privileges_of_command(const std::string& socket, const fs::path& directory,
                                  const std::string& user) {
  fs::permissions(directory, fs::perms::all);
  const fs::path seen = directory / ("seen-" + user);
  EXPECT_EQ(run(socket, {.argv = {"/bin/sh", "-c", "cat /proc/self/status > " + seen.string()},
                         .user = user}),
            0);
  return privileges_in(seen);
}

TEST_F(CommandsTest, OfTheOperatorRunAsTheUserThatIsNamed) {
  const Commands commands;
  const std::string seen = privileges_of_command(commands.path(), commands.directory(), kOther);
  EXPECT_TRUE(has_line(seen, "Uid:\t65534\t65534\t65534\t65534")) << seen;
  EXPECT_TRUE(has_line(seen, "Gid:\t65534\t65534\t65534\t65534")) << seen;
  EXPECT_EQ(seen.find("Groups:\t0"), std::string::npos) << seen;
  EXPECT_TRUE(has_line(seen, "NoNewPrivs:\t1")) << seen;
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapAmb"})
    EXPECT_TRUE(has_line(seen, std::string(set) + ":\t0000000000000000")) << seen;
  EXPECT_EQ(run(commands.path(), {.argv = {"/bin/true"}, .user = "no-such-user"}), ENOENT);
}

TEST_F(CommandsTest, OfTheOperatorHaveNothingOfTheUnitsPrivileges) {
  const ConfinedCommands commands;
  const std::string own = privileges_of_command(commands.path(), commands.directory(), "");
  EXPECT_TRUE(has_line(own, "Uid:\t61234\t61234\t61234\t61234")) << own;
  EXPECT_TRUE(has_line(own, "CapPrm:\t0000000000000000")) << own;
  EXPECT_TRUE(has_line(own, "CapAmb:\t0000000000000000")) << own;
  const std::string root = privileges_of_command(commands.path(), commands.directory(), "root");
  EXPECT_TRUE(has_line(root, "Uid:\t0\t0\t0\t0")) << root;
  EXPECT_TRUE(has_line(root, "NoNewPrivs:\t1")) << root;
  // CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER
  EXPECT_TRUE(has_line(root, "CapPrm:\t000000000000000e")) << root;
  const fs::path pid = commands.directory() / "pid";
  Command other = with_child(pid);
  other.user = kOther;
  EXPECT_EQ(run(commands.path(), other, 500ms), ETIMEDOUT) << "another user's can be killed";
  EXPECT_TRUE(ends_soon(written_pid(pid)));
}

// A container's process: a host name and mounts of its own, and few capabilities.
pid_t start_in(TestCgroup& cgroup, const Reduced& how, const fs::path& directory) {
  return cgroup.spawn([&how, &directory] {
    if (::unshare(CLONE_NEWUTS | CLONE_NEWNS) != 0 || ::sethostname("inside", 6) != 0) ::_exit(1);
    test::sleep_reduced(how, directory);
  });
}

void wait_for_exec(pid_t pid) {
  for (int i = 0; i < 500 && text_of("/proc/" + std::to_string(pid) + "/comm") != "sleep\n"; ++i)
    std::this_thread::sleep_for(10ms);
}

class PreStopCommandsTest : public CommandsTest {
 protected:
  void SetUp() override {
    CommandsTest::SetUp();
    if (!writable_cgroup2()) GTEST_SKIP() << "no writable cgroup v2";
  }
};

Decision pre_stop_of(std::vector<std::string> command) {
  auto pod = std::make_shared<Pod>();
  pod->containers.push_back({.name = "main", .requests = {}, .limits = {}});
  pod->containers.front().pre_stop = std::move(command);
  Decision decision;
  decision.pod = pod;
  decision.deadline = clock_now() + 20s;
  return decision;
}

// In its namespaces, its directory, its cgroup, and with exactly its privileges.
void expect_to_run_as(const Reduced& how, const std::string& socket) {
  SCOPED_TRACE(how.bounding + how.uid);
  const TempDir dir;
  fs::permissions(dir.path(), fs::perms::all);
  TestCgroup pod("commands");
  TestCgroup container(pod, "main.service");
  const pid_t process = start_in(container, how, dir.path());
  wait_for_exec(process);
  const Decision decision =
      pre_stop_of({"/bin/sh", "-c",
                   "cat /proc/self/status > here; cat /proc/self/cgroup > where; hostname > "
                   "name; exit 4"});
  EXPECT_EQ(run_pre_stop(decision, pod.directory(), socket, &clock_now, {}),
            Outcome::kExitStatus | 4);
  EXPECT_EQ(privileges_in(dir.path() / "here"),
            privileges_in("/proc/" + std::to_string(process) + "/status"));
  EXPECT_NE(text_of(dir.path() / "where").find("/main.service"), std::string::npos);
  EXPECT_EQ(text_of(dir.path() / "name"), "inside\n");
}

TEST_F(PreStopCommandsTest, RunInTheContainerWithItsPrivileges) {
  const Commands commands;
  for (const Reduced& how : {Reduced{}, Reduced{.bounding = 0x21}, Reduced{.uid = 65534}})
    expect_to_run_as(how, commands.path());
}

TEST_F(PreStopCommandsTest, NeedNoMoreThanTheUnitHas) {
  const ConfinedCommands commands;
  for (const Reduced& how : {Reduced{}, Reduced{.bounding = 0x22}, Reduced{.uid = 65534}})
    expect_to_run_as(how, commands.path());
}

// As headroomd expects when it comes back: it does not run the command again.
TEST_F(PreStopCommandsTest, GoOnForTheirTimeWhenHeadroomdIsGone) {
  const Commands commands;
  const TempDir dir;
  TestCgroup pod("commands");
  TestCgroup container(pod, "main.service");
  wait_for_exec(start_in(container, {}, dir.path()));
  const Fd procs(::openat(container.directory(), "cgroup.procs", O_RDWR | O_CLOEXEC));
  Command command = with_child(dir.path() / "pid");
  command.cgroup_procs = procs.get();
  leave_behind(commands.path(), command, 1500ms).reset();
  const pid_t pid = written_pid(dir.path() / "pid");
  std::this_thread::sleep_for(500ms);
  EXPECT_EQ(::kill(pid, 0), 0) << "it goes on";
  EXPECT_TRUE(ends_soon(pid));
}

TEST_F(PreStopCommandsTest, AreRefusedBesideAProcessThatCannotBeCopied) {
  const Commands commands;
  const TempDir dir;
  TestCgroup pod("commands");
  TestCgroup container(pod, "main.service");
  wait_for_exec(start_in(container, {.filtered = true}, dir.path()));
  const Decision decision = pre_stop_of({"/bin/sh", "-c", "touch here"});
  EXPECT_EQ(run_pre_stop(decision, pod.directory(), commands.path(), &clock_now, {}), EOPNOTSUPP);
  EXPECT_FALSE(fs::exists(dir.path() / "here"));
}

TEST_F(PreStopCommandsTest, AreRefusedWithoutTheSocketAtOnce) {
  const TempDir dir;
  TestCgroup pod("commands");
  TestCgroup container(pod, "main.service");
  wait_for_exec(start_in(container, {}, dir.path()));
  const auto began = std::chrono::steady_clock::now();
  const Decision decision = pre_stop_of({"/bin/true"});
  EXPECT_EQ(run_pre_stop(decision, pod.directory(), dir.path() / "none.sock", &clock_now, {}),
            ENOENT);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);
}

TEST_F(PreStopCommandsTest, AreRefusedInWhatIsNoCgroupOrHasNoProcess) {
  const Commands commands;
  const TempDir dir;
  const Fd file(::open(dir.write("cgroup.procs", std::to_string(::getpid()) + "\n").c_str(),
                       O_RDWR | O_CLOEXEC));
  EXPECT_EQ(run(commands.path(), {.argv = {"/bin/true"}, .cgroup_procs = file.get()}), EINVAL);
  TestCgroup empty("commands-empty");
  const Fd procs(::openat(empty.directory(), "cgroup.procs", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(run(commands.path(), {.argv = {"/bin/true"}, .cgroup_procs = procs.get()}), ESRCH);
}

TEST_F(CommandsTest, OfAnotherUserThanRootAreNotRun) {
  const Commands commands;
  fs::permissions(commands.directory(), fs::perms::all);
  fs::permissions(commands.path(), fs::perms::all);
  const fs::path made = commands.directory() / "made";
  const pid_t other = ::fork();
  if (other == 0) {
    if (::setresuid(65534, 65534, 65534) != 0) ::_exit(2);
    ::_exit(run(commands.path(), {.argv = {"/usr/bin/touch", made.string()}}) == ECONNABORTED ? 0
                                                                                              : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(other, &status, 0), other);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_FALSE(fs::exists(made));
}

TEST_F(CommandsTest, ThatCannotBeAskedForFailWithTheReason) {
  const TempDir dir;
  const Command command{.argv = {"/bin/true"}};
  const std::string path = dir.path() / "commands.sock";
  EXPECT_EQ(run(path, command), ENOENT);
  EXPECT_EQ(run(dir.path() / std::string(200, 'x'), command), ENAMETOOLONG);
  {
    Fd listening = listen_at(path);
    std::jthread closing([&] { Fd(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC)); });
    EXPECT_EQ(run(path, command), ECONNABORTED) << "it ended without an answer";
  }
  EXPECT_EQ(run(path, command), ECONNREFUSED) << "nothing listens any more";
  fs::remove(path);
  const Fd silent = listen_at(path, 0);
  EXPECT_EQ(run(path, command, 300ms), ETIMEDOUT) << "it does not answer";
  std::vector<RunningCommand> waiting;
  int error = 0;
  for (int i = 0; i < 64 && error == 0; ++i) {
    auto running = start_command(command, path, 1s);
    if (running)
      waiting.push_back(std::move(*running));
    else
      error = running.error().code;
  }
  EXPECT_EQ(error, EAGAIN) << "a full queue of connections is not waited for";
  const Commands commands;
  EXPECT_EQ(run(commands.path(), {.argv = {"/bin/true", std::string(kMaxCommandText, 'x')}}),
            E2BIG);
  EXPECT_EQ(run(commands.path(), {.argv = {}}), EPROTO);
}

}  // namespace
}  // namespace headroom::act
