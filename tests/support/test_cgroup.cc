// SPDX-License-Identifier: Apache-2.0
#include "support/test_cgroup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace headroom::test {
namespace {

[[noreturn]] void abort_test(const std::string& what) {
  std::fprintf(stderr, "test cgroup: %s: %s\n", what.c_str(), std::strerror(errno));
  std::abort();
}

void sleep_one_millisecond() {
  const timespec millisecond{0, 1'000'000};
  ::nanosleep(&millisecond, nullptr);
}

}  // namespace

std::optional<std::string> writable_cgroup2() {
  for (const char* mount : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"})
    if (::access((std::string(mount) + "/cgroup.controllers").c_str(), F_OK) == 0 &&
        ::access(mount, W_OK) == 0 && ::geteuid() == 0)
      return mount;
  return std::nullopt;
}

TestCgroup::TestCgroup(const std::string& name) {
  const auto root = writable_cgroup2();
  if (!root) abort_test("no writable cgroup v2");
  path_ = *root + "/headroom-test-" + name + "-" + std::to_string(::getpid());
  if (::mkdir(path_.c_str(), 0755) != 0) abort_test("mkdir " + path_);
  directory_.reset(::open(path_.c_str(), O_DIRECTORY | O_RDONLY | O_CLOEXEC));
}

TestCgroup::TestCgroup(const TestCgroup& parent, const std::string& name)
    : path_(parent.path() + "/" + name) {
  if (::mkdir(path_.c_str(), 0755) != 0) abort_test("mkdir " + path_);
  directory_.reset(::open(path_.c_str(), O_DIRECTORY | O_RDONLY | O_CLOEXEC));
}

TestCgroup::~TestCgroup() {
  remove();
}

CgroupId TestCgroup::id() const {
  struct stat status {};
  if (::fstat(directory_.get(), &status) != 0) abort_test("stat " + path_);
  return CgroupId{status.st_ino};
}

pid_t TestCgroup::spawn(const std::function<void()>& body) {
  int gate[2];
  if (::pipe2(gate, O_CLOEXEC) != 0) abort_test("pipe");
  const pid_t child = ::fork();
  if (child < 0) abort_test("fork");
  if (child == 0) {
    char go;
    if (::read(gate[0], &go, 1) != 1) ::_exit(125);
    body();
    ::_exit(0);
  }
  children_.push_back(child);
  // The child runs nothing of the test's before it is in the cgroup.
  std::ofstream(path_ + "/cgroup.procs") << child;
  if (::write(gate[1], "g", 1) != 1) abort_test("start child");
  ::close(gate[0]);
  ::close(gate[1]);
  return child;
}

pid_t TestCgroup::spawn_sleeping_child() {
  return spawn([] {
    for (;;)
      ::pause();
  });
}

void TestCgroup::remove() {
  if (path_.empty()) return;
  std::ofstream(path_ + "/cgroup.kill") << 1;
  for (const pid_t child : children_)
    ::waitpid(child, nullptr, 0);
  children_.clear();
  for (int i = 0; i < 1000 && ::rmdir(path_.c_str()) != 0 && errno == EBUSY; ++i)
    sleep_one_millisecond();
  path_.clear();
}

std::optional<int> wait_for(pid_t child, int milliseconds) {
  for (int i = 0; i <= milliseconds; ++i) {
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) == child) return status;
    sleep_one_millisecond();
  }
  return std::nullopt;
}

}  // namespace headroom::test
