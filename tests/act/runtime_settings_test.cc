// SPDX-License-Identifier: Apache-2.0
#include "act/units/runtime_settings.h"

#include "config/temp_dir.h"

#include <gtest/gtest.h>

namespace headroom::act {
namespace {

TEST(RuntimeSettings, AValueIsThereOrIsNot) {
  const test::TempDir settings;
  std::filesystem::create_directory(settings.path() / "a.slice.d");
  settings.write("a.slice.d/50-MemoryHigh.conf",
                 "# written by systemd\n[Slice]\nMemoryHigh=1048576\n");
  EXPECT_EQ(runtime_setting(settings.path(), "a.slice", "MemoryHigh"), "1048576");
  EXPECT_FALSE(runtime_setting(settings.path(), "a.slice", "Memory"));
  EXPECT_FALSE(runtime_setting(settings.path(), "a.slice", "MemoryMax"));
  EXPECT_FALSE(runtime_setting(settings.path(), "b.slice", "MemoryHigh"));
}

TEST(RuntimeSettings, OfOneUnitTheNamedOnesAreRemoved) {
  const test::TempDir settings;
  std::filesystem::create_directory(settings.path() / "a.slice.d");
  settings.write("a.slice.d/50-MemoryHigh.conf", "");
  settings.write("a.slice.d/50-MemoryMax.conf", "");
  remove_runtime_settings(settings.path(), "a.slice", {"MemoryHigh", "TasksMax"});
  EXPECT_FALSE(std::filesystem::exists(settings.path() / "a.slice.d/50-MemoryHigh.conf"));
  EXPECT_TRUE(std::filesystem::exists(settings.path() / "a.slice.d/50-MemoryMax.conf"));
  remove_runtime_settings(settings.path(), "a.slice", {"MemoryMax"});
  EXPECT_FALSE(std::filesystem::exists(settings.path() / "a.slice.d"));
}

}  // namespace
}  // namespace headroom::act
