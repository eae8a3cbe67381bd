// SPDX-License-Identifier: Apache-2.0
// Actions that take time: commands, removals, and how their end is reported.
#include "act/async_actions.h"

#include "act/exec/child_process.h"
#include "act/exec/pre_stop.h"
#include "config/temp_dir.h"
#include "support/command_servers.h"
#include "support/reduced_process.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

namespace headroom::act {
namespace {

using test::clock_now;
using test::privileges_in;
using test::Reduced;
using test::TempDir;
using test::text_of;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

int run(std::vector<std::string> argv, Duration within = 20s, bool in_background = false) {
  auto child = Child::start({.argv = std::move(argv), .in_background = in_background});
  if (!child) return child.error().code;
  return child->wait(clock_now() + within, &clock_now, {});
}

TEST(Command, ReturnsItsExitStatus) {
  EXPECT_EQ(run({"/bin/true"}), 0);
  EXPECT_EQ(run({"/bin/sh", "-c", "exit 3"}), Outcome::kExitStatus | 3);
  EXPECT_EQ(run({"/bin/sh", "-c", "kill -9 $$"}), Outcome::kExitStatus | 137);
  EXPECT_EQ(run({"/no/such/program"}), ENOENT);
  EXPECT_EQ(run({"true"}), 0) << "looked for in PATH";
  EXPECT_EQ(run({}), EINVAL);
}

// A descriptor that a library opened without O_CLOEXEC is one of root's.
TEST(Command, InheritsNoDescriptorAndOnlyTheCapabilitiesForFiles) {
  const TempDir dir;
  const int open_for_all = ::open("/proc/self/status", O_RDONLY);
  ASSERT_GE(open_for_all, 3);
  const std::string file = (dir.path() / "seen").string();
  auto child = Child::start(
      {.argv = {"/bin/sh", "-c", "exec > " + file + "; ls /proc/$$/fd; cat /proc/$$/status"}});
  ASSERT_TRUE(child) << child.error().what;
  EXPECT_EQ(child->wait(clock_now() + 10s, &clock_now, {}), 0);
  ::close(open_for_all);
  std::ifstream seen(file);
  std::vector<int> descriptors;
  unsigned long long effective = ~0ULL, files = 0xfULL;
  int no_new_privileges = 0;
  for (std::string line; std::getline(seen, line);) {
    if (!line.empty() && line.find_first_not_of("0123456789") == std::string::npos)
      descriptors.push_back(std::stoi(line));
    if (line.starts_with("CapEff:")) effective = std::stoull(line.substr(7), nullptr, 16);
    if (line.starts_with("NoNewPrivs:")) no_new_privileges = std::stoi(line.substr(11));
  }
  EXPECT_EQ(descriptors.size(), std::size(std::array{0, 1, 2}));
  EXPECT_EQ(effective & ~files, 0u) << "CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, "
                                       "CAP_FOWNER";
  EXPECT_EQ(no_new_privileges, 1);
}

TEST(Command, IsKilledWithItsChildrenAtTheDeadline) {
  TempDir dir;
  const fs::path pid = dir.path() / "pid";
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(run({"/bin/sh", "-c", "sleep 300 & echo $! > " + pid.string() + "; wait"}, 500ms),
            ETIMEDOUT);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
  const int child = std::stoi(text_of(pid));
  for (int i = 0; i < 100 && ::kill(child, 0) == 0; ++i)  // a zombie until reaped
    std::this_thread::sleep_for(20ms);
  const std::string status = text_of("/proc/" + std::to_string(child) + "/stat");
  EXPECT_TRUE(status.empty() || status.find(") Z") != std::string::npos) << status;
}

TEST(Command, InTheBackgroundHasLowPriorityAndAHighOomScore) {
  TempDir dir;
  const std::string out = dir.path() / "out";
  ASSERT_EQ(run({"/bin/sh", "-c", "nice > " + out + "; cat /proc/self/oom_score_adj >> " + out},
                20s, true),
            0);
  EXPECT_EQ(text_of(out), "19\n500\n");
}

TEST(Command, HasTheUsualUmaskWhateverOurs) {
  TempDir dir;
  const std::string out = dir.path() / "out";
  const mode_t ours = ::umask(0077);
  const int ended = run({"/bin/sh", "-c", "umask > " + out});
  ::umask(ours);
  ASSERT_EQ(ended, 0);
  EXPECT_EQ(text_of(out), "0022\n");
}

// headroomd refuses them for itself; a command that needs much memory may have them.
TEST(Command, MayHaveHugePages) {
  TempDir dir;
  const std::string out = dir.path() / "out";
  ASSERT_EQ(::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
  const int ended = run({"/bin/sh", "-c", "grep THP_enabled /proc/self/status > " + out});
  ::prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
  ASSERT_EQ(ended, 0);
  EXPECT_EQ(text_of(out), "THP_enabled:\t1\n");
}

TEST(Command, IsBoundByItsMemoryLimit) {
  auto child = Child::start({.argv = {"/bin/sh", "-c", "ulimit -d"}, .data_limit = 64 << 20});
  ASSERT_TRUE(child);
  EXPECT_EQ(child->wait(clock_now() + 20s, &clock_now, {}), 0);
  const int starved = [&] {  // not even started, or dead at its first allocation
    auto greedy =
        Child::start({.argv = {"/bin/sh", "-c", "x=$(head -c 1M /dev/zero | tr '\\0' x); echo $x"},
                      .data_limit = 4096});
    return greedy ? greedy->wait(clock_now() + 20s, &clock_now, {}) : greedy.error().code;
  }();
  EXPECT_NE(starved, 0);
}

TEST(Command, EntersTheNamespacesOfItsTarget) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to enter namespaces";
  TempDir dir;
  const pid_t pod = ::fork();
  if (pod == 0) {
    if (::chdir(dir.path().c_str()) != 0) ::_exit(1);
    ::execle("/bin/sleep", "sleep", "60", nullptr,
             std::array<char*, 3>{const_cast<char*>("POD=web"),
                                  const_cast<char*>("PATH=/bin:/usr/bin"), nullptr}
                 .data());
    ::_exit(1);
  }
  std::this_thread::sleep_for(300ms);
  auto child = Child::start(
      {.argv = {"sh", "-c", "echo $POD > here; exit 4"}, .cgroup_procs = -1, .target = pod});
  ASSERT_TRUE(child) << child.error().what;
  EXPECT_EQ(child->wait(clock_now() + 20s, &clock_now, {}), Outcome::kExitStatus | 4);
  EXPECT_EQ(text_of(dir.path() / "here"), "web\n");
  ::kill(pod, SIGKILL);
  ::waitpid(pod, nullptr, 0);
}

pid_t start_reduced(const Reduced& how, const fs::path& directory) {
  const pid_t pid = ::fork();
  if (pid == 0) test::sleep_reduced(how, directory);
  return pid;
}

TEST(Command, HasNoMorePrivilegesThanItsTarget) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to enter namespaces";
  const std::pair<const char*, Reduced> cases[] = {
      {"none", {}},
      {"chown_and_kill", {.bounding = 0x21}},
      {"not_root", {.bounding = 0x21, .uid = 65534}},
      {"not_root_bounding_full", {.bounding = ~0ULL, .uid = 65534}},
      {"seccomp_filter", {.filtered = true}}};
  for (const auto& [name, how] : cases) {
    SCOPED_TRACE(name);
    TempDir dir;
    fs::permissions(dir.path(), fs::perms::all);
    const pid_t pod = start_reduced(how, dir.path());
    std::this_thread::sleep_for(300ms);
    auto child = Child::start({.argv = {"/bin/sh", "-c", "cat /proc/self/status > here"},
                               .cgroup_procs = -1,
                               .target = pod});
    if (how.filtered) {
      ASSERT_FALSE(child);
      EXPECT_EQ(child.error().code, EOPNOTSUPP);
    } else {
      EXPECT_TRUE(child) << child.error().what;
      if (child) {
        EXPECT_EQ(child->wait(clock_now() + 20s, &clock_now, {}), 0);
      }
      EXPECT_EQ(privileges_in(dir.path() / "here"),
                privileges_in("/proc/" + std::to_string(pod) + "/status"));
    }
    ::kill(pod, SIGKILL);
    ::waitpid(pod, nullptr, 0);
  }
}

// Its uids are not those that are read in /proc.
TEST(Command, IsNotRunBesideAProcessInAnotherUserNamespace) {
  TempDir dir;
  const fs::path ran = dir.path() / "ran";
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Fd result(ends[0]);
  Fd report(ends[1]);
  const pid_t pod = ::fork();
  ASSERT_GE(pod, 0);
  if (pod == 0) {
    const int error = ::unshare(CLONE_NEWUSER) == 0 ? 0 : errno;
    if (::write(report.get(), &error, sizeof error) < 0) ::_exit(1);
    for (;;)
      ::pause();
  }
  report.reset();
  int refused = -1;
  const bool reported = ::read(result.get(), &refused, sizeof refused) == sizeof refused;
  if (reported && refused == 0) {
    auto child = Child::start(
        {.argv = {"/bin/sh", "-c", "echo > " + ran.string()}, .cgroup_procs = -1, .target = pod});
    EXPECT_FALSE(child);
    if (child) {
      (void)child->wait(clock_now() + 20s, &clock_now, {});
    } else {
      EXPECT_EQ(child.error().code, EOPNOTSUPP);
      EXPECT_NE(child.error().what.find("another user namespace"), std::string::npos)
          << child.error().what;
    }
    EXPECT_FALSE(fs::exists(ran));
  }
  ::kill(pod, SIGKILL);
  ::waitpid(pod, nullptr, 0);
  ASSERT_TRUE(reported);
  if (refused != 0) GTEST_SKIP() << "unshare(CLONE_NEWUSER): " << std::strerror(refused);
}

TEST(PreStop, RunsOnlyInTheContainersOwnCgroup) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to enter namespaces";
  const std::string id(64, 'a');
  struct Case {
    std::string cgroup;
    std::vector<std::string> containers;  // the first has the command
    int expected;
  };
  for (const auto& [cgroup, containers, expected] : {
           Case{"team-main.service", {"main", "web"}, 0},
           Case{"web-main.service", {"main", "web-main"}, ESRCH},
           Case{"domain.service", {"main", "web"}, ESRCH},
           Case{"main2.service", {"main", "web"}, ESRCH},
           Case{"app.service", {"main"}, 0},
           Case{"app.service", {"main", "web"}, ESRCH},
           Case{"cri-containerd-" + id + ".scope", {"main"}, ESRCH},
           Case{id, {"a", "web"}, ESRCH},
       }) {
    SCOPED_TRACE(cgroup);
    TempDir dir;
    const pid_t process = start_reduced({}, "/");
    std::this_thread::sleep_for(300ms);
    fs::create_directories(dir.path() / cgroup);
    std::ofstream(dir.path() / cgroup / "cgroup.procs") << process << "\n";
    auto pod = std::make_shared<Pod>();
    for (const std::string& name : containers)
      pod->containers.push_back({.name = name, .requests = {}, .limits = {}});
    pod->containers.front().pre_stop = {"/bin/true"};
    Decision decision;
    decision.pod = pod;
    decision.deadline = clock_now() + 20s;
    const Fd directory(::open(dir.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    EXPECT_EQ(run_pre_stop(decision, directory.get(), "", &clock_now, {}), expected);
    ::kill(process, SIGKILL);
    ::waitpid(process, nullptr, 0);
  }
}

TEST(RemoveTree, RemovesEverythingBelowAndNothingElse) {
  TempDir dir;
  TempDir elsewhere;
  const fs::path kept = elsewhere.write("kept", "x");
  const fs::path tree = dir.path() / "tree";
  fs::create_directories(tree / "a/b/c");
  for (int i = 0; i < 600; ++i)
    std::ofstream(tree / "a" / std::to_string(i)) << i;
  fs::create_symlink(elsewhere.path(), tree / "a/b/away");
  fs::create_symlink(kept, tree / "file-away");
  EXPECT_TRUE(remove_tree(tree, {}));
  EXPECT_FALSE(fs::exists(tree));
  EXPECT_TRUE(fs::exists(kept)) << "no symbolic link is followed";
  EXPECT_TRUE(remove_tree(tree, {})) << "gone already is as wanted";
}

TEST(RemoveTree, DoesNotFollowSymlinks) {
  TempDir dir;
  TempDir elsewhere;
  const fs::path kept = elsewhere.write("kept", "x");
  fs::create_directory_symlink(elsewhere.path(), dir.path() / "link");
  EXPECT_FALSE(remove_tree(dir.path() / "link", {}));
  EXPECT_TRUE(fs::exists(kept));
}

TEST(AsyncActions, EndWithAnOutcomeOfTheirDecision) {
  AsyncActions async_actions(&clock_now);
  Decision decision;
  decision.act = Act::kReclaim;
  std::vector<Outcome> ended;
  async_actions.collect(ended);
  EXPECT_TRUE(ended.empty());
  ASSERT_TRUE(async_actions.start(decision, [](const std::stop_token&) { return 5; }));
  for (int i = 0; i < 1000 && ended.empty(); ++i) {
    std::this_thread::sleep_for(5ms);
    async_actions.collect(ended);
  }
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].result, Outcome::Result::kDone);
  EXPECT_EQ(ended[0].error, 5);
  EXPECT_EQ(ended[0].decision.act, Act::kReclaim);
  async_actions.collect(ended);
  EXPECT_TRUE(ended.empty()) << "reported once";
}

TEST(AsyncActions, WorkThatThrowsEndsWithAnError) {
  AsyncActions async_actions(&clock_now);
  Decision decision;
  decision.act = Act::kReclaim;
  ASSERT_TRUE(async_actions.start(
      decision, [](const std::stop_token&) -> int { throw std::runtime_error("bad"); }));
  std::vector<Outcome> ended;
  while (ended.empty()) {
    std::this_thread::sleep_for(1ms);
    async_actions.collect(ended);
  }
  EXPECT_EQ(ended.front().error, EIO);
  EXPECT_EQ(ended.front().decision.act, Act::kReclaim);
}

TEST(AsyncActions, AreBoundedAndStopWithTheirOwner) {
  const auto began = std::chrono::steady_clock::now();
  {
    AsyncActions async_actions(&clock_now);
    const auto long_work = [](const std::stop_token& stop) {
      while (!stop.stop_requested())
        std::this_thread::sleep_for(5ms);
      return ECANCELED;
    };
    for (std::size_t i = 0; i < AsyncActions::kMaxRunning; ++i)
      EXPECT_TRUE(async_actions.start({}, long_work));
    EXPECT_FALSE(async_actions.start({}, long_work));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, 30s);
}

}  // namespace
}  // namespace headroom::act
