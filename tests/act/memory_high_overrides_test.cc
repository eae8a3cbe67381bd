// SPDX-License-Identifier: Apache-2.0
// memory.high while it is overridden: whose value stays. The files are plain ones; a FIFO stands
// for memory.reclaim, whose writer waits.
#include "act/limits/memory_high_overrides.h"

#include "base/cgroup_directory.h"
#include "base/file_io.h"
#include "config/temp_dir.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace headroom::act {
namespace {

struct MemoryHighOverridesTest : ::testing::Test {
  MemoryHighOverridesTest() {
    std::filesystem::create_directory(pod);
    directory.reset(::open(pod.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    cgroup = cgroup_id_of(directory.get()).value();
    put("memory.high", "1048576");
  }
  // Another cgroup of the same path. `directory` is open: its number is not used again.
  void make_again(const char* high) const {
    std::filesystem::remove_all(pod);
    std::filesystem::create_directory(pod);
    ASSERT_NE(cgroup_id_at(pod), cgroup);
    put("memory.high", high);
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

// A kill lifted it: "max" is not a value of another program, for which the original is forgotten.
TEST_F(MemoryHighOverridesTest, WhileItIsLiftedTheOriginalValueIsKept) {
  bool lifted = false;
  MemoryHighOverrides held{dir.path(), [](const MemoryHighOverrides::Found&) { return Result<>(); },
                           [&](CgroupId) { return lifted; }};
  ASSERT_EQ(held.override_high(cgroup, directory.get(), Bytes{2 << 20}), 0);
  lifted = true;
  put("memory.high", "max");
  EXPECT_EQ(held.restore(cgroup), EBUSY);
  held.restore_all();
  EXPECT_EQ(held.held(), 1u);
  EXPECT_EQ(high(), "max");
  lifted = false;
  put("memory.high", "2097152");
  held.restore_all();
  EXPECT_EQ(high().substr(0, 7), "1048576");
  EXPECT_EQ(held.held(), 0u);
}

TEST_F(MemoryHighOverridesTest, ACgroupThatWasMadeAgainBeforeTheWriteIsNotWritten) {
  MemoryHighOverrides races{dir.path(), [this](const MemoryHighOverrides::Found& found) {
                              if (!found.empty()) make_again("1048576");
                              return Result<>();
                            }};
  EXPECT_EQ(races.override_high(cgroup, directory.get(), Bytes{2 << 20}), ENOENT);
  EXPECT_EQ(high(), "1048576");
  EXPECT_EQ(races.held(), 0u) << "nothing is to be restored";
}

TEST_F(MemoryHighOverridesTest, ACgroupThatWasMadeAgainIsNotRestored) {
  ASSERT_EQ(overrides.override_high(cgroup, directory.get(), Bytes{2 << 20}), 0);
  make_again("2097152");
  EXPECT_EQ(overrides.restore(cgroup), 0);
  EXPECT_EQ(high(), "2097152");
  EXPECT_EQ(overrides.held(), 0u);
}

TEST_F(MemoryHighOverridesTest, ACgroupThatWasMadeAgainIsForgotten) {
  ASSERT_EQ(overrides.override_high(cgroup, directory.get(), Bytes{2 << 20}), 0);
  make_again("1048576");
  const Fd again(::open(pod.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const CgroupId other = cgroup_id_of(again.get()).value();
  EXPECT_EQ(overrides.override_high(other, again.get(), Bytes{4 << 20}), 0);
  EXPECT_EQ(overrides.held(), 1u);
}

// The restore first reclaims what is above the original limit, which may take seconds.
struct DuringTheRestore : MemoryHighOverridesTest {
  void restore_while(const std::function<void()>& happens);
};

void DuringTheRestore::restore_while(const std::function<void()>& happens) {
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
    happens();
    while (::read(reclaim.get(), &byte, 1) == 1)
      ;
  });
  EXPECT_EQ(overrides.restore(cgroup), 0);
  other.join();
}

TEST_F(DuringTheRestore, AValueOfAnotherProgramStays) {
  restore_while([this] { put("memory.high", "4194304"); });
  EXPECT_EQ(high(), "4194304");
}

TEST_F(DuringTheRestore, ACgroupThatWasMadeAgainIsNotWritten) {
  restore_while([this] { make_again("2097152"); });
  EXPECT_EQ(high(), "2097152");
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
