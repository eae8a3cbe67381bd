// SPDX-License-Identifier: Apache-2.0
// What processes tell of a pod that is not described yet, from trees of files.
#include "config/temp_dir.h"
#include "observe/pod/parts_reader.h"

#include <fcntl.h>

#include <fstream>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

namespace fs = std::filesystem;
using test::TempDir;

class OomScoreReader : public testing::Test {
 protected:
  void process(int pid, const char* score) {
    const fs::path of = dir_.path() / "proc" / std::to_string(pid);
    fs::create_directories(of);
    std::ofstream(of / "oom_score_adj") << score << "\n";
  }
  bool is_protected(const std::string& name, const char* pids) {
    const fs::path directory = dir_.path() / name;
    fs::create_directories(directory);
    std::ofstream(directory / "cgroup.procs") << pids;
    KnownCgroup cgroup;
    cgroup.path = "/kubepods/burstable/pod1/" + name;
    cgroup.directory.reset(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    return has_protected_process(cgroup, (dir_.path() / "proc").string());
  }
  TempDir dir_;
};

TEST_F(OomScoreReader, KnowsTheKubeletsScore) {
  process(1, "-997");
  process(2, "-998");  // the pause process, which every pod has
  process(3, "985");
  process(4, "-1000");
  EXPECT_TRUE(is_protected("a", "3\n1\n"));
  EXPECT_TRUE(is_protected("b", "4\n"));
  EXPECT_FALSE(is_protected("c", "2\n3\n"));
  EXPECT_FALSE(is_protected("d", ""));
  EXPECT_FALSE(is_protected("e", "77\n")) << "it has gone";
  EXPECT_FALSE(is_protected("crio-conmon-ab.scope", "4\n")) << "the monitor's is its own";
}

}  // namespace
}  // namespace headroom::observe
