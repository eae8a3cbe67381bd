// SPDX-License-Identifier: Apache-2.0
// What headroomd says about the node, read with distrust.
#include "kube/scheduling/node_signals.h"

#include <gtest/gtest.h>

namespace headroom::kube {
namespace {

using namespace std::chrono_literals;
using namespace headroom::literals;

constexpr Instant kNow{100s};

TEST(NodeSignals, EveryValueIsRead) {
  const auto signals = signals_of(
      R"({"at_ns":99000000000,"contention":{"cpu":0.25,"memory":0.5},"hard_threshold":"memory.available",
          "shortage_seconds":90.5,"memory":{"capacity":8589934592,"left":1073741824,"growth":1048576}})",
      kNow);
  ASSERT_TRUE(signals) << signals.error().what;
  EXPECT_EQ(signals->cpu_contention, 0.25);
  EXPECT_EQ(signals->memory_contention, 0.5);
  EXPECT_EQ(signals->hard_threshold, "memory.available");
  EXPECT_EQ(signals->shortage_in, 90500ms);
  EXPECT_EQ(signals->memory_capacity, 8_GiB);
  EXPECT_EQ(signals->memory_left, 1_GiB);
  EXPECT_EQ(signals->memory_growth, 1_MiB);
}

TEST(NodeSignals, WhatIsNullOrWrongIsUnknown) {
  for (const char* rest : {R"(,"contention":null,"hard_threshold":null,"memory":{"left":null}})",
                           R"(,"contention":[1],"hard_threshold":7,"memory":{"left":"much"}})",
                           R"(,"contention":{"cpu":"x"},"memory":7,"shortage_seconds":[]})", "}"}) {
    const auto signals = signals_of(R"({"at_ns":99000000000)" + std::string(rest), kNow);
    ASSERT_TRUE(signals) << rest;
    EXPECT_FALSE(signals->cpu_contention || signals->memory_contention) << rest;
    EXPECT_FALSE(signals->hard_threshold || signals->shortage_in || signals->memory_left) << rest;
  }
}

TEST(NodeSignals, SharesAndTimesAreLimited) {
  const auto signals = signals_of(
      R"({"at_ns":99000000000,"contention":{"cpu":7,"memory":-1},"shortage_seconds":1e300,
          "memory":{"capacity":1e300}})",
      kNow);
  ASSERT_TRUE(signals);
  EXPECT_EQ(signals->cpu_contention, 1);
  EXPECT_EQ(signals->memory_contention, 0);
  EXPECT_EQ(signals->shortage_in, 1'000'000'000s);
  EXPECT_EQ(signals->memory_capacity, std::nullopt);
}

TEST(NodeSignals, WithoutATimeOrTooOldThereAreNone) {
  for (const char* text : {"", "null", "{}", "[]", R"({"at_ns":"1"})", R"({"at_ns":69000000000})",
                           R"({"at_ns":-9223372036854775808})", R"({"at_ns":1e300})"})
    EXPECT_FALSE(signals_of(text, kNow)) << text;
  EXPECT_TRUE(signals_of(R"({"at_ns":71000000000})", kNow));
}

}  // namespace
}  // namespace headroom::kube
