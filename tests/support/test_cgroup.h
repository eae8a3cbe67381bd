// SPDX-License-Identifier: Apache-2.0
// TestCgroup: a real cgroup v2 of our own, "headroom-test-*", removed with everything in it.
#pragma once

#include "base/file_io.h"

#include <headroom/units.h>

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace headroom::test {

// The cgroup v2 mount point; absent where there is none or it is not writable for us.
std::optional<std::string> writable_cgroup2();

class TestCgroup {
 public:
  // Below `parent`, or below the cgroup v2 root. Aborts the test program if it cannot be made.
  explicit TestCgroup(const std::string& name);
  TestCgroup(const TestCgroup& parent, const std::string& name);
  ~TestCgroup();
  TestCgroup(const TestCgroup&) = delete;
  TestCgroup& operator=(const TestCgroup&) = delete;

  const std::string& path() const { return path_; }
  CgroupId id() const;
  int directory() const { return directory_.get(); }

  // Forks a child into the cgroup that runs `body` and exits 0; killed with the cgroup.
  pid_t spawn(const std::function<void()>& body);
  // A child that sleeps for ever.
  pid_t spawn_sleeping_child();
  // Kills what lives here, removes the directory.
  void remove();

 private:
  std::string path_;
  Fd directory_;
  std::vector<pid_t> children_;
};

// Waits for a child; its wait status, or nothing within the time.
std::optional<int> wait_for(pid_t child, int milliseconds);

}  // namespace headroom::test
