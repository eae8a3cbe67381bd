// SPDX-License-Identifier: Apache-2.0
// A log is read once, whatever is done to its file.
#include "config/temp_dir.h"
#include "kube/api/eviction_queue.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace headroom::kube {
namespace {

namespace fs = std::filesystem;
using Lines = std::vector<std::string>;

class Follow : public ::testing::Test {
 protected:
  void append(std::string_view text) { std::ofstream(log_, std::ios::app) << text; }
  // What is new, from where the last reading ended.
  Lines news() {
    auto read = read_audit_log(log_, cursor_);
    if (!read) {
      ADD_FAILURE() << read.error().what;
      return {};
    }
    cursor_ = read->cursor;
    gap_ = read->gap;
    return read->lines;
  }
  // All of it, in as many readings as that takes.
  Lines all() {
    Lines lines;
    for (std::optional<Cursor> before; before != cursor_;) {
      before = cursor_;
      const Lines some = news();
      lines.insert(lines.end(), some.begin(), some.end());
    }
    return lines;
  }

  test::TempDir dir_;
  const fs::path log_ = dir_.path() / "evictions.jsonl";
  std::optional<Cursor> cursor_;
  bool gap_ = false;
};

TEST_F(Follow, BeginsAtTheEndOfWhatWasThereBefore) {
  append("old\n");
  EXPECT_EQ(news(), Lines{});
  append("new\n");
  EXPECT_EQ(news(), Lines{"new"});
  EXPECT_EQ(news(), Lines{});
}

TEST_F(Follow, ALogThatWasNotThereAtFirstIsReadFromItsStart) {
  EXPECT_EQ(news(), Lines{});
  append("first\n");
  EXPECT_EQ(news(), Lines{"first"});
}

TEST_F(Follow, ALineInTheMakingWaitsForItsEnd) {
  append("whole\nha");
  EXPECT_EQ(news(), Lines{});
  append("lf\n");
  EXPECT_EQ(news(), Lines{"half"}) << "at the first look the half line was not behind us";
  append("ne");
  EXPECT_EQ(news(), Lines{});
  append("xt\n");
  EXPECT_EQ(news(), Lines{"next"});
}

TEST_F(Follow, ARotatedLogIsReadToItsEndFirst) {
  append("");
  news();
  append("a\n");
  EXPECT_EQ(news(), Lines{"a"});
  append("b\n");
  fs::rename(log_, log_.string() + ".1");
  append("c\n");
  EXPECT_EQ(all(), (Lines{"b", "c"}));
  EXPECT_FALSE(gap_);
}

TEST_F(Follow, ARotatedLogWithoutASuccessorIsNotLeft) {
  append("");
  news();
  append("a\n");
  fs::rename(log_, log_.string() + ".1");
  EXPECT_EQ(all(), Lines{"a"});
  append("b\n");
  EXPECT_EQ(all(), Lines{"b"});
}

TEST_F(Follow, WhatWasRemovedUnreadIsAGap) {
  append("");
  news();
  append("lost\n");
  std::ofstream(dir_.path() / "other") << "keeps the inode from being used again";
  fs::rename(dir_.path() / "other", log_);
  append("\nkept\n");
  news();
  EXPECT_TRUE(gap_);
}

TEST_F(Follow, ALogCutInPlaceIsReadFromItsStart) {
  append("");
  news();
  append("a long line\n");
  EXPECT_EQ(news(), Lines{"a long line"});
  fs::resize_file(log_, 0);
  append("b\n");
  EXPECT_EQ(news(), Lines{"b"});
}

TEST_F(Follow, MoreThanOneReadingIsReadInSeveral) {
  append("");
  news();
  const std::string line(1000, 'x');
  for (int i = 0; i < 9000; ++i)
    append(line + "\n");
  EXPECT_EQ(all().size(), 9000U);
}

TEST_F(Follow, ALineLongerThanAReadBlocksNothing) {
  append("");
  news();
  append("before\n" + std::string(9 << 20, 'x'));
  EXPECT_EQ(all(), Lines{"before"});
  append("\nafter\n");
  EXPECT_EQ(all(), Lines{"after"});
}

TEST_F(Follow, WhatCannotBeReadIsAnErrorWithItsName) {
  fs::create_directory(log_);
  const auto read = read_audit_log(log_, Cursor{});
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().what.find("evictions.jsonl"), std::string::npos);
}

}  // namespace
}  // namespace headroom::kube
