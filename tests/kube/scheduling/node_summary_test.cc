// SPDX-License-Identifier: Apache-2.0
// The annotation of a node: small, read with distrust, and written when it says something else.
#include "kube/scheduling/node_summary.h"

#include <string>

#include <gtest/gtest.h>

namespace headroom::kube {
namespace {

NodeSummary summary() {
  return {.time = *parse_rfc3339("2026-11-20T23:00:00Z"),
          .cpu_contention = 0.12,
          .memory_contention = 0.03,
          .memory_left = 0.4,
          .shortage_expected = false,
          .hard_threshold = "memory.available"};
}

TEST(NodeSummary, IsTheSameWhenItIsReadAgain) {
  EXPECT_EQ(as_text(summary()),
            R"({"time":"2026-11-20T23:00:00Z","cpuContention":0.12,"memoryContention":0.03,)"
            R"("memoryLeft":0.4,"shortageExpected":false,"hardThreshold":"memory.available"})");
  EXPECT_EQ(*node_summary_of(as_text(summary())), summary());
  const NodeSummary bare{.time = summary().time};
  EXPECT_EQ(as_text(bare), R"({"time":"2026-11-20T23:00:00Z"})");
  EXPECT_EQ(*node_summary_of(as_text(bare)), bare);
}

TEST(NodeSummary, IsSmallWhateverItSays) {
  NodeSummary odd = summary();
  odd.cpu_contention = 1.0 / 3;
  odd.memory_left = -1e9;
  odd.hard_threshold = std::string(1000, 'x');
  EXPECT_LT(as_text(odd).size(), kMaxSummaryBytes);
  EXPECT_TRUE(node_summary_of(as_text(odd)));
}

TEST(NodeSummary, AHostileTextIsNone) {
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[]"), std::string("null"), std::string("7"),
        std::string(R"({"time":7})"), std::string(R"({"time":"yesterday"})"),
        std::string(R"({"time":"2026-11-20T23:00:00Z","x":")") + std::string(300, 'x') + "\"}"})
    EXPECT_FALSE(node_summary_of(text)) << text;
  const auto wrong = node_summary_of(
      R"({"time":"2026-11-20T23:00:00Z","cpuContention":"x","memoryLeft":1e300,"shortageExpected":1,"hardThreshold":[]})");
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->cpu_contention, std::nullopt);
  EXPECT_EQ(wrong->memory_left, 1.0);
  EXPECT_EQ(wrong->shortage_expected, std::nullopt);
  EXPECT_EQ(wrong->hard_threshold, "");
}

TEST(NodeSummary, SmallChangesAreNone) {
  NodeSummary other = summary();
  other.time += std::chrono::hours(1);
  other.cpu_contention = 0.16;
  EXPECT_EQ(change_of(summary(), other), SummaryChange::kNone);
  other.cpu_contention = 0.17;
  EXPECT_EQ(change_of(summary(), other), SummaryChange::kNumbers);
  other = summary();
  other.memory_left.reset();
  EXPECT_EQ(change_of(summary(), other), SummaryChange::kFacts);
  other = summary();
  other.hard_threshold.clear();
  EXPECT_EQ(change_of(summary(), other), SummaryChange::kFacts);
}

TEST(NodeSummary, WhatSpeaksAgainstTheNodeIsWorse) {
  NodeSummary other = summary();
  other.shortage_expected = true;
  EXPECT_EQ(change_of(summary(), other), SummaryChange::kWorse);
  EXPECT_EQ(change_of(other, summary()), SummaryChange::kFacts);
  other = summary();
  other.hard_threshold = "pid.available";
  EXPECT_EQ(change_of(summary(), other), SummaryChange::kWorse);
  other = summary();
  other.cpu_contention = *other.cpu_contention + 0.1;
  EXPECT_EQ(change_of(summary(), other), SummaryChange::kWorse);
  EXPECT_EQ(change_of(other, summary()), SummaryChange::kNumbers);
  other = summary();
  other.memory_left = *other.memory_left - 0.2;
  EXPECT_EQ(change_of(summary(), other), SummaryChange::kNumbers);
}

}  // namespace
}  // namespace headroom::kube
