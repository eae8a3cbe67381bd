// SPDX-License-Identifier: Apache-2.0
// Limits that are lifted for a kill: what is saved before the write, and what is restored. The
// files are plain ones, which show what was written as cgroup files of these names do.
#include "act/limits/suspended_limits.h"

#include "act/original_values.h"
#include "base/file_io.h"
#include "support/own_mounts.h"

#include <fcntl.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <gtest/gtest.h>

namespace headroom::act {
namespace {

namespace fs = std::filesystem;

class SuspendedLimitsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string made = testing::TempDir() + "headroom-lifted-XXXXXX";
    ASSERT_NE(::mkdtemp(made.data()), nullptr);
    top = made;
    slice = top / "slice";
    state = top / "state";
    fs::create_directories(slice);
    fs::create_directories(state);
    put("cpu.max", "20000 100000");
    put("cpu.weight", "00100");
    put("memory.high", "max");
  }
  void TearDown() override { fs::remove_all(top); }

  void put(const char* file, const char* value) const {
    std::ofstream(slice / file, std::ios::trunc) << value << '\n';
  }
  std::string value(const char* file) const {
    std::string line;
    std::ifstream text(slice / file);
    std::getline(text, line);
    return line;
  }
  Fd open() const { return Fd(::open(slice.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)); }
  SuspendedLimits::Save save() {
    return [this](const SuspendedLimits::Found& found) {
      cpu_max_when_saved = value("cpu.max");
      return suspended_limits_file(state).save(found);
    };
  }
  bool is_lifted() const {
    return value("cpu.max").starts_with("max") && value("cpu.weight") == "10000";
  }
  bool is_restored() const {
    return value("cpu.max") == "20000 100000" && value("cpu.weight") == "00100";
  }

  fs::path top, slice, state;
  std::string cpu_max_when_saved;
};

TEST_F(SuspendedLimitsTest, TheValuesAreSavedFirstAndRestoredAtTheRelease) {
  SuspendedLimits limits(save());
  const auto cgroups = limits.lift(open().get());
  EXPECT_EQ(cgroups.size(), 1u);
  EXPECT_TRUE(is_lifted());
  EXPECT_EQ(cpu_max_when_saved, "20000 100000") << "saved before the write";
  EXPECT_TRUE(fs::exists(state / "lifted-limits.json"));
  limits.release(cgroups);
  EXPECT_TRUE(is_restored());
  EXPECT_EQ(limits.lifted(), 0u);
  EXPECT_FALSE(fs::exists(state / "lifted-limits.json"));
}

TEST_F(SuspendedLimitsTest, TheNextDaemonRestoresAfterACrash) {
  SuspendedLimits crashed([this](const SuspendedLimits::Found& found) -> Result<> {
    if (!found.empty()) return suspended_limits_file(state).save(found);
    return {};
  });
  (void)crashed.lift(open().get());
  ASSERT_TRUE(is_lifted());
  SuspendedLimits next(save());
  auto former = suspended_limits_file(state).load();
  ASSERT_TRUE(former);
  next.restore_all(std::move(*former));
  EXPECT_TRUE(is_restored());
  EXPECT_FALSE(fs::exists(state / "lifted-limits.json"));
}

TEST_F(SuspendedLimitsTest, NothingIsLiftedThatCannotBeSaved) {
  SuspendedLimits limits(
      [](const SuspendedLimits::Found&) -> Result<> { return failure("no room"); });
  EXPECT_TRUE(limits.lift(open().get()).empty());
  EXPECT_TRUE(is_restored());
  EXPECT_EQ(limits.lifted(), 0u);
}

TEST_F(SuspendedLimitsTest, TheLastOfTwoVictimsRestores) {
  SuspendedLimits limits;
  const auto first = limits.lift(open().get()), second = limits.lift(open().get());
  limits.release(first);
  EXPECT_TRUE(is_lifted());
  limits.release(second);
  EXPECT_TRUE(is_restored());
}

TEST_F(SuspendedLimitsTest, AValueWrittenByAnotherProcessStays) {
  SuspendedLimits limits;
  const auto cgroups = limits.lift(open().get());
  put("cpu.weight", "300");
  limits.release(cgroups);
  EXPECT_EQ(value("cpu.weight"), "300");
  EXPECT_EQ(value("cpu.max"), "20000 100000");
}

TEST_F(SuspendedLimitsTest, ACgroupCanBeRestoredBeforeItsVictimsExit) {
  SuspendedLimits limits;
  const auto cgroups = limits.lift(open().get());
  ASSERT_EQ(cgroups.size(), 1u);
  limits.restore(cgroups[0]);
  EXPECT_TRUE(is_restored());
  put("cpu.max", "max 100000");
  limits.release(cgroups);
  EXPECT_EQ(value("cpu.max"), "max 100000") << "nothing is left to restore";
}

TEST_F(SuspendedLimitsTest, WhatCannotBeWrittenIsKeptAndTriedAgain) {
  const auto failed = test::with_own_mounts([this] {
    SuspendedLimits limits(save());
    const auto cgroups = limits.lift(open().get());
    EXPECT_TRUE(test::mount_read_only(slice));
    limits.release(cgroups);
    EXPECT_TRUE(is_lifted());
    EXPECT_EQ(limits.lifted(), 1u);
    EXPECT_TRUE(fs::exists(state / "lifted-limits.json"));
    EXPECT_TRUE(test::mount_writable_again(slice));
    limits.release({});
    EXPECT_TRUE(is_restored());
    EXPECT_EQ(limits.lifted(), 0u);
    EXPECT_FALSE(fs::exists(state / "lifted-limits.json"));
    return HasFailure() ? 1 : 0;
  });
  if (!failed) GTEST_SKIP() << "needs root and mount namespaces";
  EXPECT_EQ(failed, 0);
}

TEST_F(SuspendedLimitsTest, OnlyWhatWasNotWrittenIsKept) {
  const auto failed = test::with_own_mounts([this] {
    SuspendedLimits limits(save());
    const auto cgroups = limits.lift(open().get());
    const fs::path file = slice / "cpu.max";
    EXPECT_TRUE(test::mount_read_only(file));
    limits.release(cgroups);
    EXPECT_EQ(value("cpu.weight"), "00100");
    const auto kept = suspended_limits_file(state).read();
    EXPECT_TRUE(kept && kept->size() == 1 &&
                kept->begin()->second.values ==
                    (std::map<std::string, std::string>{{"cpu.max", "20000 100000"}}));
    EXPECT_TRUE(test::mount_writable_again(file));
    return HasFailure() ? 1 : 0;
  });
  if (!failed) GTEST_SKIP() << "needs root and mount namespaces";
  EXPECT_EQ(failed, 0);
}

TEST_F(SuspendedLimitsTest, AnotherCgroupOfTheSameNameIsNotTouched) {
  SuspendedLimits limits;
  const auto cgroups = limits.lift(open().get());
  fs::rename(slice, top / "old");
  fs::create_directories(slice);
  put("cpu.max", "max 100000");
  limits.release(cgroups);
  EXPECT_EQ(value("cpu.max"), "max 100000");
}

}  // namespace
}  // namespace headroom::act
