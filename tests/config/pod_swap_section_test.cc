// SPDX-License-Identifier: Apache-2.0
// headroom.podSwap.
#include "config/files.h"
#include "config/load/load.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::config {
namespace {

using test::load_text;
using test::said;
using Lines = std::vector<std::string>;

TEST(PodSwapSection, IsReadCompletely) {
  const auto config = load_text(
      "headroom: {podSwap: {high: 25%, zswapWriteback: false, protectedPriority: 1000}}\n");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->pod_swap,
            (judge_limits::PodSwapPolicy{
                .high = 0.25F, .zswap_writeback = false, .protected_priority = 1000}));
  EXPECT_TRUE(config->pod_swap.any());
}

TEST(PodSwapSection, IsOffByDefault) {
  const auto config =
      load_text("headroom: {podSwap: {zswapWriteback: true, protectedPriority: 0}}\n");
  ASSERT_TRUE(config);
  EXPECT_FALSE(config->pod_swap.any());
}

TEST(PodSwapSection, AllErrorsAreReported) {
  EXPECT_EQ(said(load_text(R"(headroom:
  podSwap:
    high: 1Gi
    zswapWriteback: never
    protectedPriority: 2000000000
    priority: 1
)")),
            (Lines{"5: headroom.podSwap.high: expected a percentage between 0% and 100%, such as "
                   "25%, found \"1Gi\"",
                   "6: headroom.podSwap.zswapWriteback: expected true or false, found the string "
                   "\"never\"",
                   "7: headroom.podSwap.protectedPriority: expected a whole number from "
                   "-2147483648 to 1999999999, found the number 2000000000",
                   "8: unknown key headroom.podSwap.priority"}));
}

}  // namespace
}  // namespace headroom::config
