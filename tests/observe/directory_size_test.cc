// SPDX-License-Identifier: Apache-2.0
// What a tree takes: against a tree of known files.
#include "observe/node/directory_size.h"

#include "config/temp_dir.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

using test::TempDir;
namespace fs = std::filesystem;

constexpr WalkRate kFast{1'000'000};

// The blocks the filesystem itself says each takes.
std::int64_t blocks(const fs::path& path) {
  struct stat status {};
  EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
  return status.st_blocks * 512;
}

TEST(TreeSize, CountsBlocksAndInodesWithTheTopItself) {
  TempDir dir;
  fs::create_directories(dir.path() / "a/b");
  dir.write("a/one", std::string(100'000, 'x'));
  dir.write("a/b/two", "y");
  const auto size = directory_size(dir.path(), kFast, {});
  ASSERT_TRUE(size);
  EXPECT_EQ(size->inodes, 5);
  EXPECT_EQ(size->used->count, blocks(dir.path()) + blocks(dir.path() / "a") +
                                   blocks(dir.path() / "a/b") + blocks(dir.path() / "a/one") +
                                   blocks(dir.path() / "a/b/two"));
}

TEST(TreeSize, CountsAHardLinkOnceAndFollowsNoSymbolicOne) {
  TempDir dir;
  TempDir elsewhere;
  elsewhere.write("big", std::string(1 << 20, 'x'));
  dir.write("one", std::string(100'000, 'x'));
  fs::create_hard_link(dir.path() / "one", dir.path() / "again");
  fs::create_symlink(elsewhere.path(), dir.path() / "away");
  const auto size = directory_size(dir.path(), kFast, {});
  ASSERT_TRUE(size);
  EXPECT_EQ(size->inodes, 3);
  EXPECT_LT(size->used->count, 300'000);
}

TEST(TreeSize, OfNothingIsZeroAndOfAFileItsOwn) {
  TempDir dir;
  const auto nothing = directory_size(dir.path() / "not-there", kFast, {});
  ASSERT_TRUE(nothing);
  EXPECT_EQ(nothing->used, Bytes{0});
  EXPECT_EQ(nothing->inodes, 0);
  const auto file = dir.write("file", std::string(10'000, 'x'));
  const auto one = directory_size(file, kFast, {});
  ASSERT_TRUE(one);
  EXPECT_EQ(one->used->count, blocks(file));
  EXPECT_EQ(one->inodes, 1);
}

TEST(TreeSize, ATreeTooDeepIsUnknownNotWrong) {
  TempDir dir;
  fs::path at = dir.path();
  for (int depth = 0; depth < 600; ++depth)
    at /= "d";
  fs::create_directories(at);
  const auto size = directory_size(dir.path(), kFast, {});
  EXPECT_FALSE(size);
}

TEST(TreeSize, AStopIsHeard) {
  TempDir dir;
  for (int i = 0; i < 2000; ++i)
    dir.write(std::to_string(i), "");
  std::stop_source stop;
  std::jthread soon([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    stop.request_stop();
  });
  const auto began = std::chrono::steady_clock::now();
  EXPECT_FALSE(directory_size(dir.path(), WalkRate{10}, stop.get_token()));  // else minutes
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(20));
}

TEST(TreeSize, AnOrdinaryDirectoryHasNoQuota) {
  TempDir dir;
  const int fd = ::open(dir.path().c_str(), O_RDONLY | O_DIRECTORY);
  EXPECT_FALSE(directory_quota(fd));
  ::close(fd);
}

}  // namespace
}  // namespace headroom::observe
