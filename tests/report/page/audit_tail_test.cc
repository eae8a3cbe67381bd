// SPDX-License-Identifier: Apache-2.0
// The end of an audit log as a list, whatever the log is like.
#include "report/page/audit_tail.h"

#include "config/temp_dir.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

using test::TempDir;
using Json = nlohmann::json;

std::string text_of(ResponseBody& body, std::size_t room_size) {
  std::string text, room(room_size, '\0');
  while (const std::size_t size = body.read(room))
    text.append(room, 0, size);
  return text;
}

// The list's numbers n of {"n":…}.
std::vector<int> numbers(const std::string& file, std::size_t last, std::size_t room = 4096) {
  auto tail = AuditTail::open(file, last);
  EXPECT_TRUE(tail) << tail.error().what;
  const Json list = Json::parse(text_of(**tail, room));
  EXPECT_TRUE(list.is_array());
  std::vector<int> found;
  for (const Json& each : list)
    found.push_back(each.at("n"));
  return found;
}

std::string record(int n, std::size_t padding = 0) {
  return R"({"n":)" + std::to_string(n) + R"(,"pad":")" + std::string(padding, 'x') + "\"}\n";
}

struct AuditTailTest : ::testing::Test {
  void write(const std::string& text) { std::ofstream(file) << text; }
  TempDir dir;
  std::string file = (dir.path() / "evictions.jsonl").string();
};

TEST_F(AuditTailTest, TheLastOnesOldestFirst) {
  struct Case {
    const char* name;
    std::string log;
    std::size_t last;
    std::vector<int> wanted;
  };
  for (const Case& each : {
           Case{"empty", "", 5, {}},
           {"one", record(1), 5, {1}},
           {"fewer_than_asked", record(1) + record(2), 5, {1, 2}},
           {"as_many", record(1) + record(2), 2, {1, 2}},
           {"more", record(1) + record(2) + record(3), 2, {2, 3}},
           {"half_written_end", record(1) + R"({"n":2)", 5, {1}},
           {"only_half_a_line", R"({"n":2)", 5, {}},
           {"no_record_among_them", record(1) + "{\"n\":" + record(2) + record(3), 5, {1, 3}},
           {"empty_lines_count", record(1) + "\n\n" + record(2), 3, {2}},
           {"zeros_after_a_crash",
            record(1) + std::string(100, '\0') + "\n" + record(2),
            9,
            {1, 2}},
       }) {
    write(each.log);
    EXPECT_EQ(numbers(file, each.last), each.wanted) << each.name;
    EXPECT_EQ(numbers(file, each.last, 3), each.wanted) << each.name << ", three bytes at a time";
  }
}

TEST_F(AuditTailTest, LinesLongerThanABlock) {
  std::string log;
  for (int n = 0; n < 6; ++n)
    log += record(n, 100'000);
  write(log);
  EXPECT_EQ(numbers(file, 3), (std::vector<int>{3, 4, 5}));
}

TEST_F(AuditTailTest, WhatLiesTooFarBackIsLeftOut) {
  std::string log;
  for (int n = 0; n < 12; ++n)
    log += record(n, 1'000'000);
  write(log);
  EXPECT_EQ(numbers(file, 100), (std::vector<int>{4, 5, 6, 7, 8, 9, 10, 11}));
}

TEST_F(AuditTailTest, NeverMoreThanTheMaximum) {
  std::string log;
  for (int n = 0; n < 150; ++n)
    log += record(n);
  write(log);
  EXPECT_EQ(numbers(file, 1000).size(), AuditTail::kMax);
}

TEST_F(AuditTailTest, WithoutALogThereIsNone) {
  EXPECT_TRUE(numbers(file, 5).empty());
  EXPECT_TRUE(numbers("", 5).empty());
  EXPECT_EQ(audit_etag(file), "");
}

TEST_F(AuditTailTest, ADirectoryHasNoRecords) {
  std::filesystem::create_directory(file);
  EXPECT_TRUE(numbers(file, 5).empty());
}

TEST_F(AuditTailTest, TheTagChangesWithTheLog) {
  write(record(1));
  const std::string first = audit_etag(file);
  EXPECT_EQ(audit_etag(file), first);
  write(record(1) + record(2));
  EXPECT_NE(audit_etag(file), first);
}

}  // namespace
}  // namespace headroom::report
