// SPDX-License-Identifier: Apache-2.0
// Log lines on their way out.
#include "base/log/journal.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

namespace headroom::log {
namespace {

TEST(Journal, FieldsAreEncodedAfterTheMessage) {
  const std::string payload = encode("evicted", {{"HEADROOM_POD", "default/hog"}, {"EMPTY", ""}});
  EXPECT_EQ(payload, "evicted\x1eHEADROOM_POD=default/hog");
  EXPECT_EQ(message_of(payload), "evicted");
  EXPECT_EQ(message_of("plain"), "plain");
}

TEST(Journal, TheJournalIsRecognisedByItsDeviceAndInode) {
  struct stat is {};
  ASSERT_EQ(::fstat(STDERR_FILENO, &is), 0);
  const std::string here = std::to_string(is.st_dev) + ":" + std::to_string(is.st_ino);
  ::setenv("JOURNAL_STREAM", here.c_str(), 1);
  EXPECT_TRUE(stderr_is_journal());
  ::setenv("JOURNAL_STREAM", "1:1", 1);
  EXPECT_FALSE(stderr_is_journal()) << "stderr was redirected since";
  ::unsetenv("JOURNAL_STREAM");
  EXPECT_FALSE(stderr_is_journal());
}

TEST(Journal, PlainStderrShowsTheMessageWithoutItsFields) {
  ::testing::internal::CaptureStderr();
  {
    const Logging logging("warning");
    write(Level::warn, "evicted default/hog", {{"HEADROOM_POD", "default/hog"}});
    info("not at this level");
    error("{} more", 2);
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "warning: evicted default/hog\nerror: 2 more\n");
}

TEST(Journal, ALineLoggedAfterTheQueueEndedReachesStderr) {
  { const Logging logging("info"); }
  ::testing::internal::CaptureStderr();
  warning("late");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "warning: late\n");
}

}  // namespace
}  // namespace headroom::log
