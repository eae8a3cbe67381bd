// SPDX-License-Identifier: Apache-2.0
#include "report/self_threads.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

namespace headroom::report {
namespace {

using namespace std::chrono_literals;

std::optional<Duration> cost_of(const std::string& part) {
  for (const PartCost& each : cost_by_part())
    if (each.part == part) return each.cpu;
  return std::nullopt;
}

TEST(CostByPart, ChargesAThreadToItsPart) {
  std::atomic<bool> stop{false}, named{false};
  std::thread busy([&] {
    name_thread("spinner");
    named = true;
    while (!stop) {
    }
  });
  while (!named)
    std::this_thread::yield();
  const auto before = cost_of("spinner");
  ASSERT_TRUE(before);
  for (int i = 0; i < 500 && *cost_of("spinner") - *before < 20ms; ++i)
    std::this_thread::sleep_for(10ms);
  EXPECT_GE(*cost_of("spinner") - *before, 20ms);
  stop = true;
  busy.join();
  EXPECT_FALSE(cost_of("spinner")) << "its time is among others' now";
}

TEST(CostByPart, AlwaysTellsTheLoopAndTheRest) {
  EXPECT_TRUE(cost_of("loop"));
  ASSERT_TRUE(cost_of("other"));
  EXPECT_GE(*cost_of("other"), 0ns);
}

}  // namespace
}  // namespace headroom::report
