// SPDX-License-Identifier: Apache-2.0
// headroom.podLimits, headroom.coldMemory and headroom.thrashAware.
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

TEST(PodMemorySection, IsReadCompletely) {
  const auto config = load_text(R"(headroom:
  thrashAware: true
  podLimits:
    reclaim: true
    rescue: {ceiling: 150%, margin: 3%}
  coldMemory: {below: 20%, step: 8Mi, refaultLimit: 5%, swappiness: 100}
)");
  ASSERT_TRUE(config);
  EXPECT_TRUE(config->thrash_aware);
  EXPECT_EQ(
      config->pod_memory,
      (PodMemoryConfig{
          .limits = {.reclaim = true, .ceiling = 1.5F},
          .rescue_margin = 0.03F,
          .cold = {.below = 0.2F, .step = 8_MiB, .refault_limit = 0.05F, .swappiness = 100}}));
}

TEST(PodMemorySection, IsOffByDefault) {
  const auto config = load_text("headroom: {podLimits: {}, coldMemory: {step: 4Mi}}\n");
  ASSERT_TRUE(config);
  EXPECT_FALSE(config->pod_memory.any());
  EXPECT_FALSE(config->thrash_aware);
}

TEST(PodMemorySection, AllErrorsAreReported) {
  EXPECT_EQ(said(load_text(R"(headroom:
  podLimits:
    rescue: {ceiling: 80%}
    reclaims: true
  coldMemory:
    below: 2Gi
    step: 4Ki
    swappiness: 201
)")),
            (Lines{"5: headroom.podLimits.rescue.ceiling: expected a percentage from 101% to "
                   "1000%, such as 150%, found \"80%\"",
                   "6: unknown key headroom.podLimits.reclaims, did you mean reclaim?",
                   "8: headroom.coldMemory.below: expected a percentage between 0% and 100%, such "
                   "as 20%, found \"2Gi\"",
                   "9: headroom.coldMemory.step: must be from 1Mi to 1Gi",
                   "10: headroom.coldMemory.swappiness: expected a whole number from 0 to 200, "
                   "found the number 201"}));
}

}  // namespace
}  // namespace headroom::config
