// SPDX-License-Identifier: Apache-2.0
// State files on a file system that takes only a part of the text.
#include "base/atomic_file.h"

#include <stdlib.h>
#include <sys/resource.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

namespace headroom {
namespace {

// The first write is short, without an error; the second one says why.
TEST(AtomicFile, AShortWriteReturnsItsError) {
  std::string directory = testing::TempDir() + "headroom-state-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 10, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  errno = ENOTTY;  // of an earlier call
  const auto written = write_atomically(directory + "/state.json", std::string(20, 'x'));
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, EFBIG);
  EXPECT_FALSE(std::filesystem::exists(directory + "/state.json"));
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace headroom
