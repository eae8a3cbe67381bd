// SPDX-License-Identifier: Apache-2.0
// The score of a node, and when it is refused.
#include "kube/extender/node_score.h"

#include <ostream>
#include <string>

#include <gtest/gtest.h>

namespace headroom::kube {
namespace {

using namespace std::chrono_literals;

const WallTime kNow = *parse_rfc3339("2026-11-20T23:00:00Z");

struct Case {
  const char* name;
  NodeSummary summary;
  Duration age = 0s;
  int score = 0;
  bool refused = false;
};
void PrintTo(const Case& row, std::ostream* out) {
  *out << row.name;
}

class NodeScore : public testing::TestWithParam<Case> {};

TEST_P(NodeScore, Is) {
  NodeSummary summary = GetParam().summary;
  summary.time = kNow - std::chrono::duration_cast<WallTime::duration>(GetParam().age);
  EXPECT_EQ(score_of(&summary, kNow), GetParam().score);
  EXPECT_EQ(refusal_of(&summary, kNow).has_value(), GetParam().refused);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, NodeScore,
    testing::Values(
        Case{.name = "idle",
             .summary = {.cpu_contention = 0, .memory_contention = 0, .memory_left = 0.9},
             .score = 10},
        Case{.name = "half_is_enough",
             .summary = {.cpu_contention = 0, .memory_left = 0.5},
             .score = 10},
        Case{.name = "quarter_left",
             .summary = {.cpu_contention = 0, .memory_left = 0.25},
             .score = 8},
        Case{.name = "full", .summary = {.cpu_contention = 0, .memory_left = 0}, .score = 5},
        Case{.name = "busy_cpu",
             .summary = {.cpu_contention = 0.2, .memory_contention = 0, .memory_left = 0.5},
             .score = 6},
        Case{.name = "the_worse_counts",
             .summary = {.cpu_contention = 0, .memory_contention = 0.25, .memory_left = 0.5},
             .score = 5},
        Case{.name = "worst", .summary = {.cpu_contention = 1, .memory_left = 0}, .score = 0},
        Case{.name = "nothing_known", .summary = {}, .score = 5},
        Case{.name = "only_contention_known", .summary = {.cpu_contention = 0}, .score = 8},
        Case{.name = "shortage",
             .summary = {.cpu_contention = 0, .memory_left = 0.9, .shortage_expected = true},
             .score = 2},
        Case{.name = "hard",
             .summary = {.cpu_contention = 0,
                         .memory_left = 0.9,
                         .hard_threshold = "memory.available"},
             .score = 0,
             .refused = true},
        Case{.name = "hard_a_while_ago",
             .summary = {.hard_threshold = "memory.available"},
             .age = 91s,
             .score = 0},
        Case{.name = "hard_long_ago",
             .summary = {.hard_threshold = "memory.available"},
             .age = 12min,
             .score = 5},
        Case{.name = "worst_long_ago",
             .summary = {.cpu_contention = 1, .memory_left = 0},
             .age = 12min,
             .score = 5},
        Case{.name = "worst_of_the_future",
             .summary = {.cpu_contention = 1, .memory_left = 0, .hard_threshold = "pid.available"},
             .age = -12min,
             .score = 5},
        Case{.name = "a_clock_ahead",
             .summary = {.cpu_contention = 1, .memory_left = 0},
             .age = -1min,
             .score = 0}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(NodeScore, OfAnUnknownNodeIsNeutral) {
  EXPECT_EQ(score_of(nullptr, kNow), 5);
  EXPECT_FALSE(refusal_of(nullptr, kNow));
}

// A node that is better in nothing has no higher score.
TEST(NodeScore, NeverRisesWithContentionOrUse) {
  for (double contention = 0; contention <= 1; contention += 0.01)
    for (double left = 0; left <= 1; left += 0.05) {
      const NodeSummary summary{.time = kNow, .cpu_contention = contention, .memory_left = left};
      NodeSummary busier = summary, fuller = summary;
      busier.cpu_contention = contention + 0.01;
      fuller.memory_left = left - 0.05;
      EXPECT_LE(score_of(&busier, kNow), score_of(&summary, kNow));
      EXPECT_LE(score_of(&fuller, kNow), score_of(&summary, kNow));
      EXPECT_GE(score_of(&busier, kNow), 0);
      EXPECT_LE(score_of(&summary, kNow), kMaxScore);
    }
}

}  // namespace
}  // namespace headroom::kube
