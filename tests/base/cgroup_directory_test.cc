// SPDX-License-Identifier: Apache-2.0
#include "base/cgroup_directory.h"

#include "support/fake_cgroupfs.h"

#include <fcntl.h>

#include <filesystem>
#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace headroom {
namespace {

class CgroupNumber : public testing::Test {
 protected:
  std::optional<std::int64_t> number(const std::string& text) {
    cgroups_.write("", "memory.high", text);
    return number_at(directory_.get(), "memory.high");
  }

  test::FakeCgroupfs cgroups_{{.name = "", .files = {}, .children = {{.name = "pod"}}}};
  Fd directory_{::open(cgroups_.root().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
};

TEST_F(CgroupNumber, IsTheNumberAtTheStartOrMax) {
  EXPECT_EQ(number("4096\n"), 4096);
  EXPECT_EQ(number("0"), 0);
  EXPECT_EQ(number("9223372036854771712\n"), 9223372036854771712);
  EXPECT_EQ(number("max\n"), kMaxNumber);
  EXPECT_EQ(number("100 100000\n"), 100);
  EXPECT_EQ(number("max\n576\n"), kMaxNumber) << "the first line";
}

TEST_F(CgroupNumber, IsAbsentWhereThereIsNone) {
  EXPECT_EQ(number(""), std::nullopt);
  EXPECT_EQ(number("\n"), std::nullopt);
  EXPECT_EQ(number("maximum\n"), std::nullopt);
  EXPECT_EQ(number("18446744073709551616\n"), std::nullopt);
  EXPECT_EQ(number_at(directory_.get(), "memory.max"), std::nullopt);
  EXPECT_EQ(number_of(Fd()), std::nullopt);
}

// A file that stays open is read from its start each time.
TEST_F(CgroupNumber, OfAnOpenFileIsReadAgain) {
  ASSERT_EQ(number("1\n"), 1);
  const Fd file(::openat(directory_.get(), "memory.high", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(number_of(file), 1);
  ASSERT_EQ(number("22\n"), 22);
  EXPECT_EQ(number_of(file), 22);
}

TEST_F(CgroupNumber, PathOfADirectoryFollowsItsRemoval) {
  const std::string path = cgroups_.root() / "pod";
  const Fd pod(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  EXPECT_EQ(path_of_directory(pod.get()), path);
  cgroups_.remove("pod");
  EXPECT_EQ(path_of_directory(pod.get()), path + " (deleted)");
  EXPECT_EQ(path_of_directory(-1), "");
}

}  // namespace
}  // namespace headroom
