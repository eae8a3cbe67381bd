// SPDX-License-Identifier: Apache-2.0
// ChangedCgroup: a directory with the files of a cgroup, and a state directory with the ledger of
// what was changed in it.
#pragma once

#include "base/file_io.h"
#include "config/temp_dir.h"
#include "ctl/changes_command.h"

#include <headroom/units.h>

#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::test {

struct ChangedCgroup : ::testing::Test {
  void put(const char* file, std::string_view value) const {
    std::ofstream(pod / file, std::ios::trunc) << value << '\n';
  }
  std::string value(const char* file) const {
    std::string line;
    std::ifstream text(pod / file);
    std::getline(text, line);
    return line;
  }
  // What headroomctl changes shows.
  Result<std::vector<ctl::Change>> ledger() const {
    return ctl::read_ledger({.state_dir = state, .cpu_state_file = {}, .memory_state_file = {}});
  }
  bool ledger_is_empty() const {
    const auto changes = ledger();
    EXPECT_TRUE(changes) << changes.error().what;
    return changes && changes->empty();
  }
  void make_pod() {
    std::filesystem::create_directories(pod);
    std::filesystem::remove_all(state);
    std::filesystem::create_directories(state);
    directory.reset(::open(pod.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct stat status {};
    ASSERT_EQ(::fstat(directory.get(), &status), 0);
    cgroup = CgroupId{status.st_ino};
  }

  const TempDir dir;
  const std::filesystem::path pod = dir.path() / "pod", state = dir.path() / "state";
  Fd directory;
  CgroupId cgroup;
};

}  // namespace headroom::test
