// SPDX-License-Identifier: Apache-2.0
// headroom.cpuSuppress.
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

TEST(CpuSuppressSection, IsReadCompletely) {
  const auto config = load_text("headroom: {cpuSuppress: {threshold: 25%, batchPriority: -5}}\n");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->cpu_suppress,
            (judge_limits::SuppressPolicy{.threshold = 0.25F, .batch_priority = -5}));
}

TEST(CpuSuppressSection, NeedsNoThresholdAtAllTimes) {
  const auto config = load_text("headroom: {cpuSuppress: {always: true}}\n");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->cpu_suppress, judge_limits::SuppressPolicy{.always = true});
}

TEST(CpuSuppressSection, IsOffByDefault) {
  const auto config = load_text("headroom: {cpuSuppress: {batchPriority: 0}}\n");
  ASSERT_TRUE(config);
  EXPECT_FALSE(config->cpu_suppress.is_on());
}

TEST(CpuSuppressSection, AllErrorsAreReported) {
  EXPECT_EQ(
      said(load_text(R"(headroom:
  cpuSuppress:
    threshold: 0%
    batchPriority: 2000000000
    priority: 1
)")),
      (Lines{"5: headroom.cpuSuppress.threshold: expected a percentage between 0% and 100%, such "
             "as 20%, found \"0%\"",
             "6: headroom.cpuSuppress.batchPriority: expected a whole number from -2147483648 to "
             "1999999999, found the number 2000000000",
             "7: unknown key headroom.cpuSuppress.priority"}));
}

TEST(CpuSuppressSection, AThresholdBesideAlwaysIsAnError) {
  EXPECT_EQ(said(load_text("headroom: {cpuSuppress: {threshold: 20%, always: true}}\n")),
            Lines{"3: headroom.cpuSuppress.threshold: has no effect beside always: true"});
}

}  // namespace
}  // namespace headroom::config
