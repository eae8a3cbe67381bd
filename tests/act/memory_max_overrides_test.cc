// SPDX-License-Identifier: Apache-2.0
// memory.max that is raised and lowered: whose value stays, and what is not lowered. The files are
// plain ones.
#include "act/limits/memory_max_overrides.h"

#include "act/original_values.h"
#include "base/file_io.h"
#include "config/temp_dir.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace headroom::act {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

struct MemoryMaxOverridesTest : ::testing::Test {
  MemoryMaxOverridesTest() {
    std::filesystem::create_directory(pod);
    directory.reset(::open(pod.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct stat status {};
    EXPECT_EQ(::fstat(directory.get(), &status), 0);
    cgroup = CgroupId{status.st_ino};
    put("memory.max", 256 * kMiB);
    put("memory.current", 100 * kMiB);
    put("memory.high", "max");
  }
  void put(const char* file, const std::string& value) const {
    std::ofstream(pod / file, std::ios::trunc) << value << '\n';
  }
  void put(const char* file, std::int64_t value) const { put(file, std::to_string(value)); }
  std::string read(const char* file) const {
    std::string line;
    std::getline(std::ifstream(pod / file), line);
    return line;
  }
  std::int64_t max() const { return std::stoll(read("memory.max")) / kMiB; }
  int raise(std::int64_t to) {
    return overrides.raise(cgroup, directory.get(), "/pod", Bytes{to * kMiB}, Bytes{384 * kMiB});
  }
  int lower(std::int64_t to) { return overrides.lower(cgroup, directory.get(), Bytes{to * kMiB}); }

  int brake(Bytes high) {
    return overrides.set_brake(cgroup, directory.get(), "/pod", high, Bytes{384 * kMiB});
  }

  const test::TempDir dir;
  const std::filesystem::path pod = dir.path() / "pod";
  Fd directory;
  CgroupId cgroup;
  bool can_save = true;
  MemoryMaxOverrides::Found saved;
  MemoryMaxOverrides overrides{dir.path(), [this](const MemoryMaxOverrides::Found& found) {
                                 if (!can_save) return Result<>(failure("save", ENOSPC));
                                 saved = found;
                                 return Result<>();
                               }};
};

TEST_F(MemoryMaxOverridesTest, TheOriginalIsSavedAndRestored) {
  EXPECT_EQ(raise(272), 0);
  EXPECT_EQ(max(), 272);
  ASSERT_TRUE(saved.contains(cgroup));
  EXPECT_EQ(saved.at(cgroup).found, Bytes{256 * kMiB});
  EXPECT_EQ(saved.at(cgroup).ceiling, Bytes{384 * kMiB});
  EXPECT_EQ(raise(288), 0);
  EXPECT_EQ(overrides.original(cgroup), Bytes{256 * kMiB});
  EXPECT_EQ(lower(256), 0);
  EXPECT_EQ(max(), 256);
  EXPECT_TRUE(saved.empty());
  EXPECT_EQ(read("memory.high"), "max");
}

TEST_F(MemoryMaxOverridesTest, NothingIsWrittenThatCouldNotBeRestored) {
  can_save = false;
  EXPECT_EQ(raise(272), EIO);
  EXPECT_EQ(brake(Bytes{248 * kMiB}), EIO);
  EXPECT_EQ(read("memory.high"), "max");
  EXPECT_EQ(max(), 256);
  EXPECT_FALSE(overrides.original(cgroup));
}

TEST_F(MemoryMaxOverridesTest, ALimitNearUsageIsNotLowered) {
  ASSERT_EQ(raise(300), 0);
  put("memory.current", 250 * kMiB);
  EXPECT_EQ(lower(256), EAGAIN) << "within a sixteenth of the new limit";
  EXPECT_EQ(max(), 300);
  EXPECT_EQ(read("memory.high"), "max");
  EXPECT_EQ(lower(280), 0);
  EXPECT_EQ(max(), 280);
  EXPECT_EQ(overrides.original(cgroup), Bytes{256 * kMiB}) << "still raised";
}

TEST_F(MemoryMaxOverridesTest, AValueOfAnotherProgramStays) {
  ASSERT_EQ(raise(272), 0);
  put("memory.max", 512 * kMiB);
  EXPECT_EQ(lower(256), 0);
  EXPECT_EQ(max(), 512);
  EXPECT_TRUE(saved.empty());
  put("memory.max", 256 * kMiB);
  ASSERT_EQ(raise(272), 0);
  put("memory.max", 128 * kMiB);
  EXPECT_EQ(raise(288), ESTALE);
  EXPECT_EQ(max(), 128);
}

TEST_F(MemoryMaxOverridesTest, AnExactOriginalIsRestoredExactly) {
  put("memory.max", "268439552");  // 256 MiB and a page
  ASSERT_EQ(raise(272), 0);
  EXPECT_EQ(overrides.lower(cgroup, directory.get(), Bytes{256 * kMiB}), 0);
  EXPECT_EQ(read("memory.max"), "268439552");
}

TEST_F(MemoryMaxOverridesTest, TheBrakeIsSetOnlyWhereThereIsNoMemoryHigh) {
  EXPECT_EQ(brake(Bytes{248 * kMiB}), 0);
  EXPECT_EQ(read("memory.high"), std::to_string(248 * kMiB));
  EXPECT_EQ(brake(Bytes{250 * kMiB}), 0);
  EXPECT_EQ(overrides.release_brake(cgroup, directory.get()), 0);
  EXPECT_EQ(read("memory.high"), "max");
  put("memory.high", 200 * kMiB);
  EXPECT_EQ(brake(Bytes{248 * kMiB}), EBUSY);
  EXPECT_EQ(read("memory.high"), std::to_string(200 * kMiB));
}

TEST_F(MemoryMaxOverridesTest, TheBrakeOutlivesACrashOfTheDaemonOnlyInTheFile) {
  ASSERT_EQ(brake(Bytes{248 * kMiB}), 0);
  ASSERT_TRUE(saved.contains(cgroup));
  EXPECT_FALSE(overrides.original(cgroup)) << "not raised";
  MemoryMaxOverrides next(dir.path(), [this](const MemoryMaxOverrides::Found& found) {
    saved = found;
    return Result<>();
  });
  next.resume(saved);
  next.restore_all();
  EXPECT_EQ(read("memory.high"), "max");
  EXPECT_EQ(max(), 256);
  EXPECT_TRUE(saved.empty());
}

TEST_F(MemoryMaxOverridesTest, LoweringKeepsTheMemoryHighOfAnotherProgram) {
  ASSERT_EQ(raise(320), 0);
  put("memory.high", 310 * kMiB);
  EXPECT_EQ(lower(256), 0);
  EXPECT_EQ(read("memory.high"), std::to_string(310 * kMiB));
}

TEST_F(MemoryMaxOverridesTest, WhatAnEarlierDaemonLeftIsLowered) {
  ASSERT_EQ(raise(320), 0);
  MemoryMaxOverrides next(dir.path(), [this](const MemoryMaxOverrides::Found& found) {
    saved = found;
    return Result<>();
  });
  MemoryMaxOverrides::Found former = saved;
  former.at(cgroup).set = Bytes{300 * kMiB};  // not the last one: the daemon was killed in between
  next.resume(former);
  next.restore_all();
  EXPECT_EQ(max(), 256);
  EXPECT_TRUE(saved.empty());
}

TEST_F(MemoryMaxOverridesTest, WhatIsInUseStaysRaisedAndInTheFile) {
  ASSERT_EQ(raise(320), 0);
  put("memory.current", 300 * kMiB);
  overrides.restore_all();
  EXPECT_EQ(max(), 320);
  EXPECT_TRUE(saved.contains(cgroup));
}

TEST_F(MemoryMaxOverridesTest, ARemovedCgroupIsForgotten) {
  ASSERT_EQ(raise(320), 0);
  std::filesystem::remove_all(pod);
  overrides.restore_all();
  EXPECT_TRUE(saved.empty());
}

TEST_F(MemoryMaxOverridesTest, TheFileKeepsTheEntries) {
  ASSERT_EQ(raise(320), 0);
  const auto file = memory_max_file(dir.path());
  ASSERT_TRUE(file.save(saved));
  EXPECT_EQ(*file.load(), saved);
}

}  // namespace
}  // namespace headroom::act
