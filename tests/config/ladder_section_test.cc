// SPDX-License-Identifier: Apache-2.0
// headroom.ladder and headroom.evictionUnit.
#include "config/files.h"
#include "config/load/load.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::config {
namespace {

using namespace std::chrono_literals;
using test::load_text;
using test::said;
using Lines = std::vector<std::string>;

TEST(LadderSection, IsReadCompletely) {
  const auto config = load_text(R"(headroom:
  evictionUnit: container
  ladder:
    reclaim:
      margin: 5%
      step: 32Mi
    squeeze:
      margin: 2%
      maxDuration: 10s
    stuck:
      waitDuration: 1m
      relaxDuration: 2m
      evict: true
)");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->policy.eviction_unit, EvictionUnit::kContainer);
  EXPECT_EQ(config->policy.ladder, (LadderPolicy{.reclaim_margin = 0.05F,
                                                 .lower_high_margin = 0.02F,
                                                 .reclaim_step = 32_MiB,
                                                 .lower_high_limit = 10s,
                                                 .stuck_duration = 1min,
                                                 .raise_high_duration = 2min,
                                                 .evict_stuck = true}));
}

TEST(LadderSection, DefaultsAreNoLadderAndWholePods) {
  const auto config = load_text("headroom: {}\n");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->policy.eviction_unit, EvictionUnit::kPod);
  EXPECT_EQ(config->policy.ladder, LadderPolicy{});
  EXPECT_FALSE(config->policy.ladder.any());
}

TEST(LadderSection, AllErrorsAreReported) {
  EXPECT_EQ(said(load_text(R"(headroom:
  evictionUnit: thread
  ladder:
    reclaim:
      margin: 200Mi
      step: 1Mi
    squeeze:
      maxDuration: 0s
    stuck:
      relaxDuration: -1s
      evict: true
)")),
            (Lines{"4: headroom.evictionUnit: expected pod, container or process, found \"thread\"",
                   "7: headroom.ladder.reclaim.margin: expected a percentage between 0% and 100%, "
                   "such as 5%, found \"200Mi\"",
                   "8: headroom.ladder.reclaim.step: must be from 4Mi to 1Gi",
                   "10: headroom.ladder.squeeze.maxDuration: must be more than zero",
                   "12: headroom.ladder.stuck.relaxDuration: must not be negative",
                   "13: headroom.ladder.stuck.evict: needs waitDuration beside it"}));
}

}  // namespace
}  // namespace headroom::config
