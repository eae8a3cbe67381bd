// SPDX-License-Identifier: Apache-2.0
#include "kube/extender/node_score.h"

#include <algorithm>
#include <cmath>

namespace headroom::kube {
namespace {

constexpr double kHalf = kMaxScore / 2.0;
constexpr double kWorstContention = 0.25;
constexpr double kEnoughLeft = 0.5;
constexpr int kShortageScore = 2;

bool is_older(const NodeSummary& summary, WallTime now, Duration limit) {
  const auto age = now - summary.time;
  return age > limit || -age > limit;
}

double contention_points(const NodeSummary& summary) {
  if (!summary.cpu_contention && !summary.memory_contention) return kHalf / 2;
  const double worse =
      std::max(summary.cpu_contention.value_or(0), summary.memory_contention.value_or(0));
  return kHalf * (1 - std::min(1.0, worse / kWorstContention));
}

double headroom_points(const NodeSummary& summary) {
  if (!summary.memory_left) return kHalf / 2;
  return kHalf * std::min(1.0, *summary.memory_left / kEnoughLeft);
}

}  // namespace

int score_of(const NodeSummary* summary, WallTime now) {
  if (!summary || is_older(*summary, now, kSummaryLasts)) return kNeutralScore;
  if (!summary->hard_threshold.empty()) return 0;
  const int score =
      static_cast<int>(std::lround(contention_points(*summary) + headroom_points(*summary)));
  return summary->shortage_expected.value_or(false) ? std::min(score, kShortageScore) : score;
}

std::optional<std::string> refusal_of(const NodeSummary* summary, WallTime now) {
  if (!summary || summary->hard_threshold.empty() || is_older(*summary, now, kRefusalLasts))
    return std::nullopt;
  return "headroom: the node has crossed its hard threshold of " + summary->hard_threshold;
}

}  // namespace headroom::kube
