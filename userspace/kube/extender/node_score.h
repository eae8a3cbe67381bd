// SPDX-License-Identifier: Apache-2.0
// How good a node is for another pod, as an extender of kube-scheduler says it. Pure.
//
// The score is the sum of two halves, of 5 points each: contention (5 at none, 0 at 25 % of lost
// time, by the worse of CPU and memory) and headroom (5 if half of the memory is left, 0 if none
// is). A half that is unknown has 2.5 points. While a shortage is expected the score is at most 2,
// and 0 while a hard threshold is met. Of a node of which nothing is known it is 5.
#pragma once

#include "base/clock.h"
#include "kube/scheduling/node_summary.h"

#include <headroom/units.h>

#include <chrono>
#include <optional>
#include <string>

namespace headroom::kube {

// k8s.io/kube-scheduler/extender/v1: MinExtenderPriority, MaxExtenderPriority.
inline constexpr int kMaxScore = 10;
inline constexpr int kNeutralScore = 5;

// An older summary says nothing: it is written every five minutes.
inline constexpr Duration kSummaryLasts = std::chrono::minutes(11);
// A hard threshold that is met is written every half minute.
inline constexpr Duration kRefusalLasts = std::chrono::seconds(90);

// `summary`: null if the node has none. Clocks of nodes may differ: one from the future is as old
// as one from the past.
int score_of(const NodeSummary* summary, WallTime now);

// Why no pod should be placed there now; absent: it may. Only a fact that was reported just now
// refuses a node.
std::optional<std::string> refusal_of(const NodeSummary* summary, WallTime now);

}  // namespace headroom::kube
