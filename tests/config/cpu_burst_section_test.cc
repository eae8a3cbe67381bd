// SPDX-License-Identifier: Apache-2.0
// headroom.cpuBurst.
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

TEST(CpuBurstSection, IsReadCompletely) {
  const auto config = load_text("headroom: {cpuBurst: {budget: 25%, contended: 80%}}\n");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->cpu_burst, (judge_limits::BurstPolicy{.budget = 0.25F, .contended = 0.8F}));
}

TEST(CpuBurstSection, IsOffByDefault) {
  const auto config = load_text("headroom: {cpuBurst: {contended: 80%}}\n");
  ASSERT_TRUE(config);
  EXPECT_FALSE(config->cpu_burst.budget);
}

TEST(CpuBurstSection, AllErrorsAreReported) {
  EXPECT_EQ(
      said(load_text(R"(headroom:
  cpuBurst:
    budget: 0%
    contended: 900%
    burst: 1
)")),
      (Lines{"5: headroom.cpuBurst.budget: expected a percentage between 0% and 100%, such as "
             "20%, found \"0%\"",
             "6: headroom.cpuBurst.contended: expected a percentage between 0% and 100%, "
             "such as 90%, found \"900%\"",
             "7: unknown key headroom.cpuBurst.burst"}));
}

}  // namespace
}  // namespace headroom::config
