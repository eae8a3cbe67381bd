// SPDX-License-Identifier: Apache-2.0
// Tree: a throw-away cgroup tree with processes in it, for the programs of bench/.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace headroom::bench {

[[noreturn]] inline void die(const std::string& doing) {
  std::fprintf(stderr, "%s: %s\n", doing.c_str(), std::strerror(errno));
  std::exit(2);
}

inline bool write_file(const std::filesystem::path& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool written = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(fd);
  return written;
}

inline void raise_descriptor_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max = 1u << 20;
  if (setrlimit(RLIMIT_NOFILE, &limit) == 0) return;
  getrlimit(RLIMIT_NOFILE, &limit);  // not root: as far as we may
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// "headroom-test-NAME" below the cgroup2 root, every controller of the root enabled down to the
// leaves; killed and removed with everything in it.
class TestCgroupTree {
 public:
  TestCgroupTree(std::filesystem::path cgroup_root, const std::string& name)
      : root_(std::move(cgroup_root)), path_(root_ / ("headroom-test-" + name)) {
    remove();  // a run before us may have been killed
    std::ifstream controllers(root_ / "cgroup.controllers");
    for (std::string controller; controllers >> controller;)
      controllers_.push_back(controller);
    enable(root_);
    if (mkdir(path_.c_str(), 0755) < 0) die("make " + path_.string());
    enable(path_);
  }
  ~TestCgroupTree() { remove(); }
  TestCgroupTree(const TestCgroupTree&) = delete;
  TestCgroupTree& operator=(const TestCgroupTree&) = delete;

  const std::filesystem::path& path() const { return path_; }

  // A cgroup below; `parent` ones have their controllers passed on to their children.
  std::filesystem::path make(const std::string& name, bool parent = false) {
    const std::filesystem::path made = path_ / name;
    if (mkdir(made.c_str(), 0755) < 0) die("make " + made.string());
    if (parent) enable(made);
    return made;
  }

  // A child in the cgroup; it never returns from body.
  template <class Body>
  pid_t spawn(const std::filesystem::path& cgroup, Body&& body) {
    const pid_t child = fork();
    if (child < 0) die("fork");
    if (child == 0) {
      if (!write_file(cgroup / "cgroup.procs", "0")) _exit(1);
      body();
      _exit(0);
    }
    children_.push_back(child);
    return child;
  }

 private:
  void enable(const std::filesystem::path& cgroup) {
    for (const std::string& controller : controllers_)
      write_file(cgroup / "cgroup.subtree_control", "+" + controller);  // what cannot be is skipped
  }

  void remove() {
    if (!std::filesystem::exists(path_)) return;
    write_file(path_ / "cgroup.kill", "1");  // since 5.14
    for (pid_t child : children_) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
    children_.clear();
    remove_below(path_);
  }
  static void remove_below(const std::filesystem::path& cgroup) {
    std::vector<std::filesystem::path> below;
    for (const auto& entry : std::filesystem::directory_iterator(cgroup))
      if (entry.is_directory()) below.push_back(entry.path());
    for (const auto& child : below)
      remove_below(child);
    // Busy for a moment after its last process died.
    for (int i = 0; i < 1000 && rmdir(cgroup.c_str()) < 0 && errno == EBUSY; ++i)
      usleep(5000);
  }

  std::filesystem::path root_;
  std::filesystem::path path_;
  std::vector<std::string> controllers_;
  std::vector<pid_t> children_;
};

}  // namespace headroom::bench
