// SPDX-License-Identifier: Apache-2.0
// State files on a file system that takes only a part of the text.
#include "base/atomic_file.h"

#include "base/file_io.h"

#include <stdlib.h>
#include <sys/resource.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

namespace headroom {
namespace {

// A file system that takes ten bytes of a file.
class SmallFileLimit {
 public:
  SmallFileLimit() {
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit small{.rlim_cur = 10, .rlim_max = before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  }
  ~SmallFileLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }
  SmallFileLimit(const SmallFileLimit&) = delete;
  SmallFileLimit& operator=(const SmallFileLimit&) = delete;

 private:
  rlimit before_{};
  decltype(SIG_IGN) handler_ = ::signal(SIGXFSZ, SIG_IGN);
};

// The first write is short, without an error; the second one says why.
TEST(AtomicFile, AShortWriteReturnsItsError) {
  std::string directory = testing::TempDir() + "headroom-state-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  const auto written = [&] {
    const SmallFileLimit limit;
    errno = ENOTTY;  // of an earlier call
    return write_atomically(directory + "/state.json", std::string(20, 'x'));
  }();
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, EFBIG);
  EXPECT_FALSE(std::filesystem::exists(directory + "/state.json"));
  std::filesystem::remove_all(directory);
}

TEST(FileValue, AShortWriteIsAnError) {
  std::string file = testing::TempDir() + "headroom-value-XXXXXX";
  const Fd created(::mkstemp(file.data()));
  ASSERT_TRUE(created);
  const auto written = [&] {
    const SmallFileLimit limit;
    errno = ENOTTY;  // of an earlier call
    return write_file_value(file, std::string(20, 'x'));
  }();
  ASSERT_FALSE(written) << "half a value was written";
  EXPECT_EQ(written.error().code, EIO);
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace headroom
