// SPDX-License-Identifier: Apache-2.0
// memory.high while it is overridden: whose value stays. The files are plain ones; a FIFO stands
// for memory.reclaim, whose writer waits.
#include "act/limits/memory_high_overrides.h"

#include "base/file_io.h"
#include "config/temp_dir.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <fstream>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace headroom::act {
namespace {

struct MemoryHighOverridesTest : ::testing::Test {
  MemoryHighOverridesTest() {
    std::filesystem::create_directory(pod);
    directory.reset(::open(pod.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct stat status {};
    EXPECT_EQ(::fstat(directory.get(), &status), 0);
    cgroup = CgroupId{status.st_ino};
    put("memory.high", "1048576");
  }
  void put(const char* file, const char* value) const {
    std::ofstream(pod / file, std::ios::trunc) << value << '\n';
  }
  std::string high() const {
    std::string line;
    std::getline(std::ifstream(pod / "memory.high"), line);
    return line.substr(0, line.find('\n'));
  }

  const test::TempDir dir;
  const std::filesystem::path pod = dir.path() / "pod";
  Fd directory;
  CgroupId cgroup;
  MemoryHighOverrides overrides{dir.path(),
                                [](const MemoryHighOverrides::Found&) { return Result<>(); }};
};

TEST_F(MemoryHighOverridesTest, TheOriginalValueIsRestored) {
  ASSERT_EQ(overrides.override_high(cgroup, directory.get(), Bytes{2 << 20}), 0);
  EXPECT_EQ(high().substr(0, 7), "2097152");
  put("memory.high", "2097152");
  EXPECT_EQ(overrides.restore(cgroup), 0);
  EXPECT_EQ(high().substr(0, 7), "1048576");
}

TEST_F(MemoryHighOverridesTest, AValueOfAnotherProgramStays) {
  ASSERT_EQ(overrides.override_high(cgroup, directory.get(), Bytes{2 << 20}), 0);
  put("memory.high", "4194304");
  EXPECT_EQ(overrides.restore(cgroup), 0);
  EXPECT_EQ(high(), "4194304");
}

// The restore first reclaims what is above the original limit, which may take seconds.
TEST_F(MemoryHighOverridesTest, AValueThatAnotherProgramWritesDuringTheRestoreStays) {
  put("memory.current", "8388608");
  ASSERT_EQ(::mkfifo((pod / "memory.reclaim").c_str(), 0600), 0);
  ASSERT_EQ(overrides.override_high(cgroup, directory.get(), Bytes{2 << 20}), 0);
  put("memory.high", "2097152");
  // A full FIFO: who writes to it waits until it is read.
  const Fd reclaim(::open((pod / "memory.reclaim").c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  char byte = 0;
  while (::write(reclaim.get(), &byte, 1) == 1)
    ;
  const Fd opened(::inotify_init1(IN_CLOEXEC));
  ASSERT_GE(::inotify_add_watch(opened.get(), (pod / "memory.reclaim").c_str(), IN_OPEN), 0);
  std::thread other([&] {
    char event[sizeof(inotify_event) + NAME_MAX + 1];
    EXPECT_GT(::read(opened.get(), event, sizeof event), 0);
    put("memory.high", "4194304");
    while (::read(reclaim.get(), &byte, 1) == 1)
      ;
  });
  EXPECT_EQ(overrides.restore(cgroup), 0);
  other.join();
  EXPECT_EQ(high(), "4194304");
}

// A unit's value is set through systemd, which may have done it although it did not answer.
TEST_F(MemoryHighOverridesTest, AUnitWhoseOriginalCannotBeRestoredIsTriedAgain) {
  ::setenv("DBUS_SYSTEM_BUS_ADDRESS", ("unix:path=" + (dir.path() / "none").string()).c_str(), 1);
  const auto unit = dir.path() / "headroom-test.slice";
  std::filesystem::create_directory(unit);
  std::ofstream(unit / "memory.high") << "1048576\n";
  const Fd opened(::open(unit.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat status {};
  ASSERT_EQ(::fstat(opened.get(), &status), 0);
  EXPECT_NE(overrides.override_high(CgroupId{status.st_ino}, opened.get(), Bytes{2 << 20}), 0);
  EXPECT_EQ(overrides.held(), 1u);
  std::ofstream(unit / "memory.high") << "2097152\n";
  EXPECT_EQ(overrides.restore(cgroup), 0) << "of another cgroup";
  EXPECT_EQ(overrides.held(), 1u) << "it was done, and there is no bus yet";
  std::ofstream(unit / "memory.high") << "1048576\n";
  EXPECT_EQ(overrides.restore(cgroup), 0);
  EXPECT_EQ(overrides.held(), 0u) << "it was not done, or another program has restored it";
  ::unsetenv("DBUS_SYSTEM_BUS_ADDRESS");
}

}  // namespace
}  // namespace headroom::act
